package server

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A user who repeats a failing command does not flood the audit log, and does not
// disturb others, even if the audit log is required.
func TestFloodOfFailures(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	sent := 0
	t.Run("serve", func(t *testing.T) { // the last lines are written at the end
		srv, _ := administered(t, func(cfg *config.Config) {
			cfg.Audit.File, cfg.Audit.Required = file, true
			cfg.Tenants["acme"].Users["bob"] = &config.User{PasswordHash: servicetest.PasswordHash()}
		})
		bob := session(t, srv, "bob")
		bob.Command(257, "MKD before")

		flood := session(t, srv, "alice")
		const commands = 500
		for _, command := range []string{
			"MKD " + strings.Repeat("\x01", 4000), "DELE " + strings.Repeat("\u202e", 300), "RNFR nothing", "RMD nothing/\x7f",
			"MFMT 20240102030405 " + strings.Repeat("x", 900), "SITE CPFR nothing",
		} {
			for range commands {
				if reply, err := flood.Send(command); err != nil || !strings.HasPrefix(reply, "5") {
					t.Fatalf("%.20q: %s, %v", command, reply, err)
				}
				sent += len(command) + len("\r\n")
			}
		}
		bob.Command(257, "MKD after")
	})
	written := must.ReadFile(t, file)
	if most := sent * 3 / 10; len(written) > most {
		t.Errorf("wrote %d bytes for %d, want at most %d", len(written), sent, most)
	}
	if !strings.Contains(written, `"more":`) || !strings.Contains(written, "/before") ||
		!strings.Contains(written, "/after") {
		t.Error("the log lacks the count of failures or a change")
	}
}
