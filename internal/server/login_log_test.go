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
