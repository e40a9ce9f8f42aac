package acceptance_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// dialFrom connects from an address of the loopback network, which the server counts as a client of its own, and
// reads the greeting.
func dialFrom(from, address string) (*ftptest.Conn, net.Conn, error) {
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", address)
	if err != nil {
		return nil, nil, err
	}
	c := ftptest.NewConn(conn)
	if _, err := c.Reply(); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return c, conn, nil
}

// TestMemoryOfStrangers: lines that arrive while PASS waits take no more memory than a session may have, however long
// they are.
func TestMemoryOfStrangers(t *testing.T) {
	t.Parallel()
	const (
		addresses, each = 20, 20
		sessions        = addresses * each
		// Each session has 50 KiB, and the collector lets as much again pile up before it looks. Checks of passwords
		// take the rest.
		most = sessions*100<<10 + 64<<20
	)
	s := newSite(t, s3test.Start(t, "minio"))
	// it is kept in two forms: it may have a letter, or a request of Telnet
	line := "NOOP \xff\xfb\x01" + strings.Repeat("a", 4000) + "\r\n"
	attack := "USER x\r\nPASS y\r\n" + strings.Repeat(line, 70)
	before := s.metric(t, heapInUse)
	var dialed errgroup.Group
	for n := range sessions {
		dialed.Go(func() error {
			_, conn, err := dialFrom(net.IPv4(127, 0, 1, byte(1+n%addresses)).String(), s.address)
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = conn.Close() })
			go func() { _, _ = io.WriteString(conn, attack) }() // the server may read no more than the beginning
			return nil
		})
	}
	must.OK(t, dialed.Wait())
	highest := s.highestHeap(t) - before
	t.Logf("%.0f KiB for each of %d sessions", highest/sessions/(1<<10), sessions)
	if highest > most {
		t.Errorf("%d sessions before the login take %.0f bytes, want %d at most", sessions, highest, most)
	}
}

const heapInUse = "go_memstats_heap_inuse_bytes"

// highestHeap is the most bytes of the heap in use that some looks in a row see.
func (s *site) highestHeap(t *testing.T) (highest float64) {
	t.Helper()
	for range 20 {
		highest = max(highest, s.metric(t, heapInUse))
	}
	return highest
}

// TestMemoryOfWaitingLines: what a user sends while a command runs waits in the client, but for 64 kB. Each session
// here waits for a data connection that never comes, and gets four megabytes of lines.
func TestMemoryOfWaitingLines(t *testing.T) {
	t.Parallel()
	const (
		sessions = 20
		most     = sessions*256<<10 + 32<<20 // the lines in two forms, the buffers of the kernel's readers, and garbage
	)
	s := newSite(t, s3test.Start(t, "minio"), mallory())
	lines := strings.Repeat("NOOP \xff\xfb\x01"+strings.Repeat("a", 4000)+"\r\n", 1000)
	before := s.metric(t, heapInUse)
	var dialed errgroup.Group
	for n := range sessions {
		dialed.Go(func() error {
			c, conn, err := dialFrom(net.IPv4(127, 0, 4, byte(1+n)).String(), s.address)
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = conn.Close() })
			for _, line := range []string{"USER mallory@acme", "PASS " + servicetest.Password, "EPSV"} {
				if reply, err := c.Send(line); err != nil || reply[0] > '3' {
					return fmt.Errorf("%s: %q, %w", line, reply, err)
				}
			}
			go func() { _, _ = io.WriteString(conn, "STOR /file\r\n"+lines) }()
			return nil
		})
	}
	must.OK(t, dialed.Wait())
	highest := s.highestHeap(t) - before
	t.Logf("%.0f KiB for each of %d sessions", highest/sessions/(1<<10), sessions)
	s.server.kill() // it would wait for the data connections
	if highest > most {
		t.Errorf("%d sessions take %.0f bytes, want %d at most", sessions, highest, most)
	}
}

// TestMemoryOfSessions holds what docs/guides/sizing-and-limits.md promises of the memory of sessions.
func TestMemoryOfSessions(t *testing.T) {
	t.Parallel()
	const sessions = 600
	s := newSite(t, s3test.Start(t, "minio"), mallory())
	// The collector begins again where the heap has grown to twice what it has found in use, and as much as the
	// stacks. So this is both without garbage, half of the stacks at least.
	used := func() float64 {
		return (s.metric(t, "go_memstats_next_gc_bytes") + s.metric(t, "go_memstats_stack_inuse_bytes")) / 2
	}
	before := used()
	for _, test := range []struct {
		name  string
		lines []string
		most  float64 // in KiB
	}{
		{"before-the-login", []string{"NOOP", "CLNT x", "USER mallory@acme"}, 16},
		{"before-the-login-under-TLS", []string{"AUTH TLS", "NOOP", "CLNT x", "USER mallory@acme"}, 30},
		{"logged-in", []string{"USER mallory@acme", "PASS " + servicetest.Password, "CWD /"}, 40},
		{"logged-in-under-TLS", []string{"AUTH TLS", "USER mallory@acme", "PASS " + servicetest.Password, "CWD /"}, 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			var dialed errgroup.Group
			dialed.SetLimit(20)
			for n := range sessions {
				dialed.Go(func() error {
					c, conn, err := dialFrom(net.IPv4(127, 0, 3, byte(1+n%100)).String(), s.address)
					if err != nil {
						return err
					}
					t.Cleanup(func() { _ = conn.Close() })
					for _, line := range test.lines {
						reply, err := c.Send(line)
						if err == nil && line == "AUTH TLS" {
							err = c.StartTLS(&tls.Config{InsecureSkipVerify: true}) // any certificate will do
						}
						if err != nil || reply[0] > '3' {
							return fmt.Errorf("%s: %q, %w", line, reply, err)
						}
					}
					return nil
				})
			}
			must.OK(t, dialed.Wait())
			each := math.Inf(1)
			collections := s.metric(t, "go_gc_duration_seconds_count")
			waitUntil(t, func() bool { // each look makes garbage, so the least is nearest to the truth
				ended := s.metric(t, "go_gc_duration_seconds_count") - collections
				if ended > 0 {
					each = min(each, (used()-before)/sessions/(1<<10))
				}
				return ended > 2
			}, func() { t.Fatal("the collector does not run") })
			t.Logf("%.1f KiB for each session", each)
			if each > test.most {
				t.Errorf("%.1f KiB for each session, want %v at most", each, test.most)
			}
		})
		s.awaitMetric(t, "babelftp_sessions", 0)
	}
}

// TestLongServerName: a handshake for a name that no host can have ends before anything compares the name.
func TestLongServerName(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	for name, labels := range map[string]int{"longest": 4, "too-long": 5, "much-too-long": 1000} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", s.implicit, &tls.Config{
				ServerName:         strings.Repeat(strings.Repeat("a", 60)+".", labels) + "example",
				InsecureSkipVerify: true, // any certificate will do
			})
			if err == nil {
				_ = conn.Close()
			}
			if long := labels > 4; (err == nil) == long {
				t.Errorf("the handshake ends with %v", err)
			}
		})
	}
}
