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

// dialFrom connects from a loopback address, which the server treats as a separate client, and reads the greeting.
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

// TestMemoryOfLines: while PASS or another command runs, the server buffers at most 64 kB of further input from a
// client, however long its lines are.
func TestMemoryOfLines(t *testing.T) {
	t.Parallel()
	// the line is kept in two forms, because its bytes may be a letter or a Telnet request
	line := "NOOP \xff\xfb\x01" + strings.Repeat("a", 4000) + "\r\n"
	for _, test := range []struct {
		name            string
		network         byte // third byte of the addresses of the clients, 127.0.X.Y
		sessions        int
		before          []string // commands before, with replies
		waits           string   // commands of which one waits
		lines           int
		each, otherwise int // maximum bytes for a session and for everything else
	}{
		// Each session has 50 KiB, and as much garbage again before the collector runs. Password checks take the
		// rest.
		{"strangers", 1, 400, nil, "USER x\r\nPASS y\r\n", 70, 100 << 10, 64 << 20},
		// the lines in two forms, the buffers of the kernel's readers, and garbage
		{"data-connection-never-comes", 4, 20, []string{"USER mallory@acme", "PASS " + servicetest.Password, "EPSV"},
			"STOR /file\r\n", 1000, 256 << 10, 32 << 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, s3test.Start(t, "minio"), mallory())
			sent := test.waits + strings.Repeat(line, test.lines)
			before := s.metric(t, heapInUse)
			var dialed errgroup.Group
			for n := range test.sessions {
				dialed.Go(func() error {
					c, conn, err := dialFrom(net.IPv4(127, 0, test.network, byte(1+n%20)).String(), s.address)
					if err != nil {
						return err
					}
					t.Cleanup(func() { _ = conn.Close() })
					for _, line := range test.before {
						if reply, err := c.Send(line); err != nil || reply[0] > '3' {
							return fmt.Errorf("%s: %q, %w", line, reply, err)
						}
					}
					go func() { _, _ = io.WriteString(conn, sent) }() // the server may read only the beginning
					return nil
				})
			}
			must.OK(t, dialed.Wait())
			highest := s.highestHeap(t) - before
			t.Logf("%.0f KiB for each of %d sessions", highest/float64(test.sessions)/(1<<10), test.sessions)
			s.server.kill() // it would wait for the data connections
			if most := test.sessions*test.each + test.otherwise; highest > float64(most) {
				t.Errorf("%d sessions use %.0f bytes, want at most %d", test.sessions, highest, most)
			}
		})
	}
}

const heapInUse = "go_memstats_heap_inuse_bytes"

// highestHeap returns the maximum of several consecutive readings of the heap in use.
func (s *site) highestHeap(t *testing.T) (highest float64) {
	t.Helper()
	for range 20 {
		highest = max(highest, s.metric(t, heapInUse))
	}
	return highest
}

// TestMemoryOfSessions checks the memory per session promised in docs/guides/sizing-and-limits.md.
func TestMemoryOfSessions(t *testing.T) {
	t.Parallel()
	const sessions = 600
	s := newSite(t, s3test.Start(t, "minio"), mallory())
	// The collector starts when the heap has grown to twice the live heap plus the stacks. This value therefore
	// excludes garbage and includes at least half of the stacks.
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
			waitUntil(t, func() bool { // each reading creates garbage, so the minimum is the best estimate
				ended := s.metric(t, "go_gc_duration_seconds_count") - collections
				if ended > 0 {
					each = min(each, (used()-before)/sessions/(1<<10))
				}
				return ended > 2
			}, func() { t.Fatal("the garbage collector did not run") })
			t.Logf("%.1f KiB for each session", each)
			if each > test.most {
				t.Errorf("%.1f KiB for each session, want %v at most", each, test.most)
			}
		})
		s.awaitMetric(t, "babelftp_sessions", 0)
	}
}

// TestLongServerName: a TLS handshake for an impossibly long server name fails before the name is compared to
// anything.
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
				t.Errorf("unexpected error of the handshake: %v", err)
			}
		})
	}
}
