package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A login service decides about users who are not in the configuration: whether they may log in, their root and
// permissions, and their quota.
func TestHook(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var login struct{ User, Password string }
		switch err := json.NewDecoder(r.Body).Decode(&login); {
		case err != nil || login.User == "down":
			w.WriteHeader(http.StatusBadGateway)
		case r.Header.Get("Authorization") != "Bearer of good news" || login.Password != "correct horse":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			_, _ = io.WriteString(
				w,
				`{"user": {"root": "/bob", "home": "/in", "quota": 20, "path_permissions": {"/out": ["list", "read"]}}}`)
		}
	}))
	defer hook.Close()
	cfg := servicetest.NewConfig(t, s)
	cfg.Limits.FailedLoginDelay = 0
	acme := cfg.Tenants["acme"]
	acme.Auth.Hook = config.Hook{URL: hook.URL, Secret: value.NewSecret("of good news"), Timeout: time.Minute}
	put(t, s, cfg, "bob/before", "alice/private") // 7 bytes each
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.Logger()})

	for _, step := range []struct {
		name, user, password string
		code                 int
	}{
		{"wrong", "bob", "wrong-horse", 530},
		{"empty", "bob", "", 530},
		{"configured", "alice", servicetest.Password, 230},
		{"configured-wrong", "alice", "wrong-horse", 530},
		{"accepted", "bob", "correct horse", 230},
		{"down", "down", "correct horse", 421},
	} {
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(331, "USER "+step.user)
		c.Command(step.code, "PASS "+step.password)
		if step.code == 421 {
			if err := c.Closed(); err != nil {
				t.Errorf("%s: the session was not closed: %v", step.name, err)
			}
		}
	}

	bob := ftptest.Dial(t, srv.Addr().String())
	bob.Login("bob@acme", "correct horse")
	if got := bob.Command(257, "PWD"); !strings.HasPrefix(got, `"/in"`) {
		t.Errorf("PWD: got %s", got)
	}
	bob.Command(250, "CWD /")
	bob.Want("before\r\n", "NLST")
	bob.Command(550, "MKD /out/new")
	count(t, srv)
	bob.Store("small", "0123456789")
	bob.WantReply(200, "Space used: 17 bytes of 20 bytes", "SITE QUOTA")
	if _, metrics := get(t, srv, "/metrics"); !strings.Contains(
		metrics, `babelftp_quota_limit_bytes{tenant="acme",user="bob"} 20`+"\n") {
		t.Error("the metrics lack the quota of the user")
	}
	// counted for the tenant whose service is down
	wantMetrics(t, srv, `babelftp_logins_total{result="failed",tenant="acme"} 1`)

	decided := false
	for _, line := range log.Take() {
		if strings.Contains(line, "horse") || strings.Contains(line, "good news") || strings.Contains(line, "down") {
			t.Errorf("the log contains a secret or an unknown name: %s", line)
		}
		decided = decided || strings.Contains(line, "level=ERROR") &&
			strings.Contains(line, "hook "+hook.URL+": unexpected HTTP status 502")
	}
	if !decided {
		t.Error("the log lacks the failure of the hook")
	}
}
