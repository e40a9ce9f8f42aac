package server

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Guesses do not flood the log: it has one line for each address and user, and one for all unknown users of an address.
// People type a password where the user name belongs, so it names users that exist, and no others.
func TestLogOfGuesses(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Limits.FailedLoginDelay = 0
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.Logger()})
	for range 3 {
		for _, name := range []string{"alice", "root", "correct-horse"} {
			for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
				c, _ := dialFrom(t, srv, from, 220)
				c.Command(331, "USER "+name)
				c.Command(530, "PASS guess")
			}
		}
	}
	known, unknown := 0, 0
	for _, line := range log.Take() {
		switch {
		case !strings.Contains(line, "login refused"):
		case strings.Contains(line, `user \"alice\" of tenant \"acme\"`):
			known++
		case strings.Contains(line, "unknown user") && !strings.Contains(line, "correct-horse"):
			unknown++
		default:
			t.Errorf("the log has %s", line)
		}
	}
	if known != 2 || unknown != 2 {
		t.Errorf("the log has %d and %d lines of 18 refused logins, want 2 of each", known, unknown)
	}
	wantMetrics(
		t, srv, `babelftp_logins_total{result="refused",tenant=""} 12`,
		`babelftp_logins_total{result="refused",tenant="acme"} 6`)
}

// Handshakes that fail do not flood the log either.
func TestLogOfHandshakes(t *testing.T) {
	c := newCertified(t, nil)
	c.start()
	for range 20 {
		conn, err := net.Dial("tcp", c.srv.ImplicitAddr().String())
		must.OK(t, err)
		_, _ = io.WriteString(conn, "USER alice\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the server closes it
		_ = conn.Close()
	}
	if n := c.log.Count("TLS handshake failed"); n != 1 {
		t.Errorf("the log has %d lines of 20 handshakes that failed, want one", n)
	}
}
