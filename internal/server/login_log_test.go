package server

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/configtest"
	"github.com/babelftp/babelftp/internal/ftptest"
	"github.com/babelftp/babelftp/internal/s3test"
)

// People type a password where the user name belongs. The log names users that exist, and no others.
func TestLogOfRefusedLogins(t *testing.T) {
	s := s3test.Start(t, "embedded")
	log := make(logged, 100)
	srv := start(t, configtest.New(t, s), Options{AWS: s.AWSConfig(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	for name, want := range map[string]string{"alice": `user \"alice\" of tenant \"acme\"`, "correct-horse": "unknown user"} {
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(331, "USER "+name)
		c.Command(530, "PASS wrong")
		line := ""
		for line = range log {
			if strings.Contains(line, "login refused") {
				break
			}
		}
		if !strings.Contains(line, want) || strings.Contains(line, "correct-horse") {
			t.Errorf("%s: the log has %q, want %s", name, line, want)
		}
	}
}

// Guesses do not flood the log: it has one line for each address and user, and one for all unknown users of an address.
func TestLogOfGuesses(t *testing.T) {
	s := s3test.Start(t, "embedded")
	cfg := configtest.New(t, s)
	cfg.Limits.FailedLoginDelay = 0
	log := make(logged, 1000)
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	for range 3 {
		for _, name := range []string{"alice", "root", "admin"} {
			for _, from := range []string{"127.0.0.2", "127.0.0.3"} {
				c, _ := dialFrom(t, srv, from, 220)
				c.Command(331, "USER "+name)
				c.Command(530, "PASS guess")
			}
		}
	}
	lines := 0
	for range len(log) {
		if strings.Contains(<-log, "login refused") {
			lines++
		}
	}
	if lines != 4 {
		t.Errorf("the log has %d lines of 18 refused logins, want 4", lines)
	}
	wantMetrics(t, srv, `babelftp_logins_total{result="refused",tenant=""} 18`)
}
