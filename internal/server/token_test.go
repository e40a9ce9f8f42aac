package server

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/external"
	"github.com/babelftp/babelftp/internal/configtest"
	"github.com/babelftp/babelftp/internal/ftptest"
	"github.com/babelftp/babelftp/internal/jwttest"
	"github.com/babelftp/babelftp/internal/s3test"
	"github.com/babelftp/babelftp/internal/wire"
)

// A token is a password, up to the length of a command line. Its claims choose the tenant and what the user sees. No log has a token.
func TestTokens(t *testing.T) {
	issuer := jwttest.New(t)
	s := s3test.Start(t, "embedded")
	cfg := configtest.New(t, s)
	cfg.Limits.FailedLoginDelay = 0
	cfg.Audit.File = filepath.Join(t.TempDir(), "audit.log")
	acme := cfg.Tenants["acme"]
	other := *acme
	other.Hosts, other.Users, other.Prefix = []string{"other.example"}, nil, "other/"
	cfg.Tenants["other"] = &other
	for name, tenant := range cfg.Tenants {
		tenant.Auth = config.Auth{Services: external.Services{JWT: external.JWT{
			Issuer: issuer.URL, Audience: jwttest.Audience, CAFile: issuer.CAFile, Require: map[string]string{"tenant": name},
			Claims: external.Attributes{Root: "root"},
		}}}
	}
	put(t, s, cfg, "bob/before")
	log := make(logged, 1000)
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})

	claims := map[string]any{"tenant": "acme", "root": "/bob"}
	short := issuer.Token(t, "bob", claims)
	claims["padding"] = strings.Repeat("x", (wire.MaxLine-len("PASS ")-len(short))*3/4-30)
	long := issuer.Token(t, "bob", claims)
	if longest := wire.MaxLine - len("PASS "); len(long) < longest-30 || len(long) > longest {
		t.Fatalf("the long token has %d bytes", len(long))
	}
	claims["padding"] = strings.Repeat("x", wire.MaxLine)
	tooLong := issuer.Token(t, "bob", claims)
	expired := issuer.Token(t, "bob", map[string]any{"tenant": "acme", "exp": time.Now().Add(-time.Hour).Unix()})
	elsewhere := issuer.Token(t, "bob", map[string]any{"tenant": "other"})
	for _, step := range []struct {
		name, user, password string
		code                 int
	}{
		{"short", "bob", short, 230},
		{"qualified", "bob@acme", short, 230},
		{"long", "bob", long, 230},
		{"too-long", "bob", tooLong, 500},
		{"expired", "bob", expired, 530},
		{"other-user", "eve", short, 530},
		{"token-of-another-tenant", "bob@acme", elsewhere, 530},
		{"other-tenant", "bob", elsewhere, 230},
		{"configured-user", "alice@acme", issuer.Token(t, "alice", map[string]any{"tenant": "acme"}), 530},
		{"configured", "alice@acme", configtest.Password, 230},
	} {
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(331, "USER "+step.user)
		t.Log(step.name)
		c.Command(step.code, "PASS "+step.password)
	}
	issuer.SetAnswer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	bob := ftptest.Dial(t, srv.Addr().String())
	bob.Login("bob", short)
	if got := bob.Transfer("NLST"); got != "before\r\n" {
		t.Errorf("the root lists %q", got)
	}
	bob.Command(221, "QUIT")
	srv = start(t, cfg, Options{AWS: s.AWSConfig(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	c := ftptest.Dial(t, srv.Addr().String())
	c.Command(331, "USER bob")
	c.Command(421, "PASS "+short)

	audit, err := os.ReadFile(cfg.Audit.File)
	if err != nil {
		t.Fatal(err)
	}
	lines := string(audit)
	if !strings.Contains(lines, `"bob"`) {
		t.Error("the audit log has no login")
	}
	for len(log) > 0 {
		lines += <-log
	}
	for _, token := range []string{short, long, tooLong, expired, elsewhere} {
		for part := range strings.SplitSeq(token, ".") {
			if strings.Contains(lines, part[:20]) {
				t.Errorf("a log has a part of a token: %s", part)
			}
		}
	}
	if !strings.Contains(lines, "issuer "+issuer.URL+": its keys cannot be read") {
		t.Error("the log does not say that the issuer is down")
	}
}
