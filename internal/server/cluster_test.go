package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// inCluster configures one of two replicas at 127.0.0.2 and 127.0.0.3.
func inCluster(cfg *config.Config, number int) {
	peers := []string{"127.0.0.2", "127.0.0.3"}
	cfg.Listen = peers[number] + ":0"
	cfg.Cluster = config.Cluster{Replica: &number, Replicas: len(peers), Peers: peers}
}

// A reload also changes the stall_timeout of relays. The other replica accepts a connection and then sends nothing.
func TestReloadOfStallTimeout(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Passive.Ports = passivePortRange(t, 4)
	inCluster(cfg, 1)
	by := start(t, cfg, Options{AWS: s.AWSConfig()})
	next := *cfg
	next.StallTimeout = 100 * time.Millisecond
	must.OK(t, by.Reload(ReloadFiles, func() (*config.Config, error) { return &next, nil }))
	port := int(cfg.Passive.Ports.First)
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.2:", port))
	must.OK(t, err)
	defer l.Close()
	client := must.Dial(t, fmt.Sprint("127.0.0.3:", port))
	owner, err := l.Accept()
	must.OK(t, err)
	defer owner.Close()
	const taken, alive = "\x03\x00\x00\x00", "\x05\x00\x00\x00"
	must.Write(t, owner, taken+alive)
	_ = client.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("client: unexpected error %v", err)
	}
	metric(t, by, `babelftp_relays_total{result="failed"} 1`)
}

// An error that prevents the start of a replica names its cause.
func TestClusterErrors(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Passive.Ports = passivePortRange(t, 2)
	inCluster(cfg, 1)
	for n, owner := range []string{"another", "this"} {
		other, err := net.Listen("tcp", fmt.Sprintf("127.0.0.3:%d", int(cfg.Passive.Ports.First)+n))
		must.OK(t, err)
		srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
		must.OK(t, err)
		err = srv.Start(t.Context())
		if failed, ok := errors.AsType[*ListenError](err); !ok || failed.Key != "passive.ports" ||
			failed.Address != other.Addr().String() {
			t.Errorf("a port of %s replica is in use: %v", owner, err)
		}
		_ = other.Close()
	}
	cfg.Cluster.Replica = nil
	host, err := os.Hostname()
	must.OK(t, err)
	_, want := cfg.Cluster.Number(host)
	if _, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()}); fmt.Sprint(err) != fmt.Sprint(want) {
		t.Errorf("without a number: got %v, want %v", err, want)
	}
}
