package acceptance_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The addresses of a network with a server behind a NAT and a load balancer.
const (
	privateServer  = "10.0.0.7"
	publicServer   = "203.0.113.9"
	publicBalancer = "203.0.113.10"
)

// forwarding makes a NAT forward ports of the public address to the server.
func forwarding(t *testing.T, ports ...string) {
	t.Helper()
	rules := fmt.Sprintf("flush ruleset\ntable ip nat {\n chain output {\n  type nat hook output priority -100;\n"+
		"  ip daddr %s tcp dport { %s } dnat to %s\n }\n}\n", publicServer, strings.Join(ports, ", "), privateServer)
	nft := exec.Command("nft", "--file", "-")
	nft.Stdin = strings.NewReader(rules)
	if out, err := nft.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v\n%s", err, out)
	}
}

// examined returns the doctor's findings at an address of the site, except for the certificate, whose name does not
// match. It also checks that no files are left.
func (s *site) examined(t *testing.T, address string, args ...string) []string {
	t.Helper()
	file := newFolder(t).write("password", []byte(password+"\n"))
	p := launch(t, binary(t), append([]string{"doctor", "ftp://alice%40acme@" + address, "--json", "--insecure", "--ca-file",
		s.ca, "--password-file", file, "--samples", "4", "--logins", "1"}, args...)...)
	code := p.wait()
	var found []struct{ Finding, Level, Cause string }
	if err := json.Unmarshal([]byte(p.stdout.String()), &found); err != nil {
		t.Fatalf("%v: %s%s", err, p.stdout.String(), p.stderr.String())
	}
	ids, wrong := []string{}, 0
	for _, f := range found {
		t.Logf("%s: %s", f.Finding, f.Cause)
		if f.Level == "wrong" {
			wrong = 1
		}
		if f.Finding != "certificate-name" {
			ids = append(ids, f.Finding)
		}
	}
	if code != wrong || strings.Contains(p.stdout.String()+p.stderr.String(), password) {
		t.Errorf("exit code %d, want %d: %s", code, wrong, p.stderr.String())
	}
	if left := s.objects(t, ""); len(left) > 0 {
		t.Errorf("unexpected files left: %q", left)
	}
	return ids
}

// babelftp doctor finds from outside what a NAT and a load balancer in front of the server break.
func TestDoctorOutside(t *testing.T) {
	t.Parallel()
	if !inNetwork(t) {
		return
	}
	commands := [][]string{{"link", "set", "lo", "up"}}
	for _, address := range []string{privateServer, publicServer, publicBalancer} {
		commands = append(commands, []string{"address", "add", address + "/32", "dev", "lo"})
	}
	for _, arguments := range commands {
		if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v\n%s", arguments, err, out)
		}
	}
	storage := s3test.Start(t, "minio")
	const ports = "30000-30009"
	open := func(t *testing.T, announced string) (s *site, control string) {
		s = newSiteOn(t, privateServer, storage, "passive: {ports: "+ports+announced+"}")
		return s, port(t, s.address)
	}
	want := func(t *testing.T, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	t.Run("NAT", func(t *testing.T) {
		s, control := open(t, ", public_address: "+publicServer)
		forwarding(t, control, ports)
		want(t, s.examined(t, publicServer+":"+control, "--idle", "1s"))
	})
	t.Run("NAT-and-the-private-address", func(t *testing.T) {
		s, control := open(t, "")
		forwarding(t, control, ports)
		want(t, s.examined(t, publicServer+":"+control, "--idle", "0"), "passive-address")
	})
	t.Run("NAT-without-the-ports", func(t *testing.T) {
		s, control := open(t, ", public_address: "+publicServer)
		forwarding(t, control)
		want(t, s.examined(t, publicServer+":"+control, "--idle", "0"), "ports-unreachable")
	})
	balancer := func(t *testing.T, control, bind, timeout string) {
		t.Helper()
		conf := fmt.Sprintf("defaults\n mode tcp\n timeout connect 5s\n timeout client %[1]s\n timeout server %[1]s\n"+
			"listen control\n bind %[2]s:%[3]s\n server s %[4]s:%[3]s\n%[5]s", timeout, publicBalancer, control,
			privateServer, bind)
		launch(t, "haproxy", "-db", "-f", newFolder(t).write("haproxy.cfg", []byte(conf)))
		waitUntil(t, func() bool {
			conn, err := net.Dial("tcp", net.JoinHostPort(publicBalancer, control))
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		}, func() { t.Fatal("haproxy does not listen") })
	}
	t.Run("load-balancer-without-the-ports", func(t *testing.T) {
		s, control := open(t, ", public_address: "+publicBalancer)
		balancer(t, control, "", "1m")
		want(t, s.examined(t, publicBalancer+":"+control, "--idle", "0"), "ports-unreachable", "active-failed")
	})
	t.Run("load-balancer-that-cuts-idle-connections", func(t *testing.T) {
		s, control := open(t, ", public_address: "+publicBalancer)
		data := fmt.Sprintf("listen data\n bind %s:%s\n server s %s\n", publicBalancer, ports, privateServer)
		balancer(t, control, data, "5s")
		want(t, s.examined(t, publicBalancer+":"+control, "--idle", "8s"), "idle-cut", "active-failed")
	})
}
