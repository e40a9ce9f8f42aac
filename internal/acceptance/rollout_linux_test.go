package acceptance_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A rollout restarts the replicas of a site one after another while clients transfer files. Like Kubernetes, it
// removes a replica from the load balancer before SIGTERM and adds it again when it is ready.
type rollout struct {
	*clusterSite
	mu    sync.Mutex
	taken [clusterReplicas]bool // out of the load balancer
}

func newRollout(t *testing.T, site *clusterSite) *rollout {
	t.Helper()
	r := &rollout{clusterSite: site}
	site.balancer.choose = func(int) int {
		r.mu.Lock()
		defer r.mu.Unlock()
		for {
			if n := rand.IntN(clusterReplicas); !r.taken[n] {
				return n
			}
		}
	}
	return r
}

func (r *rollout) take(replica int, out bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken[replica] = out
}

// restart replaces the process of a replica.
func (r *rollout) restart(t *testing.T, replica int) {
	t.Helper()
	s := r.replicas[replica]
	r.take(replica, true)
	s.server.signal(syscall.SIGTERM)
	if code := s.server.wait(); code != 0 {
		t.Errorf("replica %d: exit code %d", replica, code)
	}
	s.start(t, s.server.cmd.Args[3])
	ready := func() bool {
		response, err := http.Get("http://" + s.metrics + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
	waitUntil(t, ready, func() { t.Fatalf("replica %d did not become ready", replica) })
	r.take(replica, false)
}

// A rolloutClient stores files and reads them again. It reconnects after 421.
type rolloutClient struct {
	rollout    *rollout
	number     int
	client     *clusterClient // nil without a session
	transfers  int
	reconnects int
}

// transfer performs one transfer, in a new session if necessary. A transfer that did not begin is retried.
func (c *rolloutClient) transfer(line string, content []byte) ([]byte, error) {
	const attempts = 100
	var err error
	for range attempts {
		if c.client == nil {
			if c.client, err = c.rollout.connect(c.number); err != nil {
				c.hangUp()
				continue
			}
		}
		var back []byte
		if back, err = c.client.transfer(rand.IntN(2), line, content); err == nil {
			c.transfers++
			return back, nil
		}
		c.hangUp()
		if errors.Is(err, errBegun) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%d attempts: %w", attempts, err)
}

func (c *rolloutClient) hangUp() {
	if c.client != nil && c.client.Conn != nil {
		_ = c.client.Close()
	}
	c.client = nil
	c.reconnects++
}

// work transfers until stop.
func (c *rolloutClient) work(stop *atomic.Bool) error {
	defer c.hangUp()
	for n := 0; !stop.Load(); n++ {
		content := (&clusterClient{number: c.number}).file(n)
		name := fmt.Sprintf("%d-%d", c.number, n)
		if _, err := c.transfer("STOR "+name, content); err != nil {
			return fmt.Errorf("STOR %s: %w", name, err)
		}
		back, err := c.transfer("RETR "+name, nil)
		if err != nil {
			return fmt.Errorf("RETR %s: %w", name, err)
		}
		if !bytes.Equal(back, content) {
			return fmt.Errorf("%s has %d bytes, want %d", name, len(back), len(content))
		}
	}
	return nil
}

// TestRollout restarts three replicas twice, one after another, while clients transfer files and reconnect after
// 421. Every transfer that began completes, and no file is lost.
func TestRollout(t *testing.T) {
	t.Parallel()
	const clients = 20
	r := newRollout(t, newClusterSite(t, s3test.Start(t, "minio"), 2))
	var stop atomic.Bool
	var running sync.WaitGroup
	var transfers, reconnects atomic.Int64
	for number := range clients {
		running.Go(func() {
			c := &rolloutClient{rollout: r, number: number}
			if err := c.work(&stop); err != nil {
				t.Errorf("client %d after %d transfers: %v", number, c.transfers, err)
			}
			transfers.Add(int64(c.transfers))
			reconnects.Add(int64(c.reconnects))
		})
	}
	for range 2 {
		for replica := range clusterReplicas {
			r.restart(t, replica)
		}
	}
	stop.Store(true)
	running.Wait()
	t.Logf("%d transfers, and clients connected again %d times", transfers.Load(), reconnects.Load())
	if reconnects.Load() < 2*clients {
		t.Error("too few clients had to reconnect")
	}
}

// A replica that stops waits for an upload that it relays to another replica, even if it has no sessions itself.
func TestStoppedRelay(t *testing.T) {
	t.Parallel()
	c := newClusterSite(t, s3test.Start(t, "minio"), 2)
	c.relay()
	client, err := c.connect(0)
	must.OK(t, err)
	defer client.Close()
	data, err := client.data(0)
	must.OK(t, err)
	defer data.Close()
	if reply, err := client.Send("STOR late"); err != nil || !strings.HasPrefix(reply, "150") {
		t.Fatalf("STOR: %q, %v", reply, err)
	}
	must.Write(t, data, "before ")
	relay := c.replicas[1]
	relay.awaitMetric(t, "babelftp_relays", 1)
	relay.server.signal(syscall.SIGTERM)
	closed := func() bool { // the ports of relays close after the sessions have ended
		_, dataPort, _ := net.SplitHostPort(data.RemoteAddr().String())
		conn, err := net.Dial("tcp", net.JoinHostPort(c.balancer.hosts[1], dataPort))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}
	waitUntil(t, closed, func() { t.Fatal("the replica is still listening") })
	if _, err := io.WriteString(data, "and after"); err != nil {
		t.Error(err)
	}
	_ = data.Close()
	if reply, err := client.Reply(); err != nil || !strings.HasPrefix(reply, "226") {
		t.Errorf("reply to the upload: got %q, %v", reply, err)
	}
	if code := relay.server.wait(); code != 0 {
		t.Errorf("exit code %d of the replica", code)
	}
	c.replicas[0].mustStore(t, "late", []byte("before and after"))
}
