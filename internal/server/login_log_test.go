package server

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Guesses do not flood the log: there is one line for each address and user, and one line for all unknown users of an
// address. Because people type passwords into the user field, only existing users are named.
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
			t.Errorf("unexpected log %s", line)
		}
	}
	if known != 2 || unknown != 2 {
		t.Errorf("got %d and %d log lines for 18 refused logins, want 2 of each", known, unknown)
	}
	wantMetrics(
		t, srv, `babelftp_logins_total{result="refused",tenant=""} 12`,
		`babelftp_logins_total{result="refused",tenant="acme"} 6`)
}

// Failed handshakes do not flood the log either.
func TestLogOfHandshakes(t *testing.T) {
	c := newCertified(t, nil)
	c.start()
	for range 20 {
		conn, err := net.Dial("tcp", c.srv.ImplicitAddr().String())
		must.OK(t, err)
		_, _ = io.WriteString(conn, "USER alice\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the server closes the connection
		_ = conn.Close()
	}
	if n := c.log.Count("TLS handshake failed"); n != 1 {
		t.Errorf("got %d log lines for 20 failed handshakes, want 1", n)
	}
}

// A debug switch logs the commands and S3 requests of the selected sessions, including open ones, until it is switched
// off.
func TestDebugOfASession(t *testing.T) {
	cfg, s, administrator := bansBehind(t)
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.Logger()})
	one, _ := dialFrom(t, srv, "127.0.0.2", 220)
	other, _ := dialFrom(t, srv, "127.0.0.3", 220)
	for _, c := range []*ftptest.Client{one, other} {
		c.Login("alice", servicetest.Password)
	}
	_, err := administrator.Debug(t.Context(), "127.0.0.2", "", "", time.Hour)
	must.OK(t, err)
	one.Command(550, "SIZE during")
	other.Command(550, "SIZE elsewhere")
	_, err = administrator.DebugOff(t.Context())
	must.OK(t, err)
	one.Command(550, "SIZE after")
	shown := map[string]int{}
	for _, line := range log.Take() {
		if strings.Contains(line, "level=DEBUG") {
			_, message, _ := strings.Cut(line, "msg=")
			message, _, _ = strings.Cut(message, " session=")
			shown[message]++
			if strings.Contains(line, "elsewhere") || strings.Contains(line, "after") || strings.Contains(line, "127.0.0.3") {
				t.Errorf("unexpected log %s", line)
			}
		}
	}
	if shown["command"] != 1 || shown["reply"] != 1 || shown[`"S3 request"`] == 0 {
		t.Errorf("unexpected log %v", shown)
	}
}
