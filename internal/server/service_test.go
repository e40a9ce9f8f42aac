package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A tenantHook is the hook of a server. It answers with the tenant of each user who has the right password.
type tenantHook struct {
	url string

	mu      sync.Mutex
	tenants map[string]string // by user
	asked   []string          // user@tenant
}

func newTenantHook(t *testing.T, tenants map[string]string) *tenantHook {
	t.Helper()
	h := &tenantHook{tenants: tenants}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

func (h *tenantHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var login struct{ Tenant, User, Password string }
	if err := json.NewDecoder(r.Body).Decode(&login); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.asked = append(h.asked, login.User+"@"+login.Tenant)
	if login.Password != servicetest.Password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = io.WriteString(w, fmt.Sprintf(`{"tenant": %q, "user": {"root": "/%s"}}`, h.tenants[login.User], login.User))
}

// requests are those since the last call.
func (h *tenantHook) requests() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := strings.Join(h.asked, " ")
	h.asked = nil
	return all
}

// withService is a configuration with the tenants acme and umbrella, which share the hook of the server.
func withService(t *testing.T, hook *tenantHook) (*s3test.Server, *config.Config) {
	t.Helper()
	s, cfg := simulated(t)
	cfg.Limits.FailedLoginDelay = 0
	cfg.Auth.Hook = config.Hook{URL: hook.url}
	cfg.Tenants["umbrella"] = &config.Tenant{Bucket: s.Bucket(t), Hosts: []string{"umbrella.example"}}
	return s, cfg
}

// Failures count before the tenant is known, and the right password for a wrong tenant counts as one. A ban of a user
// of a tenant refuses the plain name too.
func TestBansBeforeTheTenantIsKnown(t *testing.T) {
	hook := newTenantHook(t, map[string]string{"bob": "acme", "frank": "umbrella", "dora": "acme", "lost": "nowhere"})
	administered, _, administrator := bansBehind(t)
	s, cfg := withService(t, hook)
	cfg.AdminSocket, cfg.Limits = administered.AdminSocket, administered.Limits
	cfg.Limits.Bans.UserScore = 2
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	for _, step := range []struct {
		name                 string
		before               func() error
		from, user, password string
		code                 int
		asked                string
	}{
		{"guess", nil, "127.0.0.2", "bob", "guess", 530, "bob@"},
		{"guess-from-elsewhere", nil, "127.0.0.3", "bob", "guess", 530, "bob@"},
		{"banned", nil, "127.0.0.4", "bob", servicetest.Password, 421, ""},
		{"with-the-tenant", nil, "127.0.0.4", "bob@acme", servicetest.Password, 230, "bob@acme"},
		{"another", nil, "127.0.0.2", "frank", servicetest.Password, 230, "frank@"},
		{"unbanned", func() error {
			_, err := administrator.Unban(t.Context(), "bob@*")
			return err
		}, "127.0.0.4", "bob", servicetest.Password, 230, "bob@"},

		{"wrong-tenant", nil, "127.0.0.2", "frank@acme", servicetest.Password, 530, "frank@acme"},
		{"wrong-tenant-again", nil, "127.0.0.3", "frank@acme", servicetest.Password, 530, "frank@acme"},
		{"banned-in-this-tenant", nil, "127.0.0.4", "frank@acme", servicetest.Password, 421, ""},
		{"not-in-the-own", nil, "127.0.0.4", "frank@umbrella", servicetest.Password, 230, "frank@umbrella"},
		{"no-tenant", nil, "127.0.0.2", "lost", servicetest.Password, 530, "lost@"},
		{"no-tenant-again", nil, "127.0.0.3", "lost", servicetest.Password, 530, "lost@"},
		{"no-tenant-is-banned", nil, "127.0.0.4", "lost", servicetest.Password, 421, ""},

		{"administrator", func() error {
			_, err := administrator.Ban(t.Context(), "dora@acme", time.Hour)
			return err
		}, "127.0.0.4", "dora@acme", servicetest.Password, 421, ""},
		{"administrator-and-the-plain-name", nil, "127.0.0.4", "dora", servicetest.Password, 421, "dora@"},
	} {
		if step.before != nil {
			if err := step.before(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
		}
		c, _ := dialFrom(t, srv, step.from, 220)
		c.Command(331, "USER "+step.user)
		c.Command(step.code, "PASS "+step.password)
		if asked := hook.requests(); asked != step.asked {
			t.Errorf("%s: the hook got %q, want %q", step.name, asked, step.asked)
		}
	}
}

// The rules of a tenant apply as soon as the answer names it.
func TestRulesOfTheTenantThatTheAnswerNames(t *testing.T) {
	yes := true
	for name, tc := range map[string]struct {
		change     func(*config.Config)
		encrypted  bool
		user, code int // the replies to USER and PASS
		asked      string
	}{
		"tls": {change: func(c *config.Config) { c.Tenants["acme"].TLS.Required = &yes }, user: 530, code: 503},
		"under-tls": {change: func(c *config.Config) { c.Tenants["acme"].TLS.Required = &yes }, encrypted: true,
			user: 331, code: 230, asked: "bob@"},
		"tls-elsewhere": {change: func(c *config.Config) { c.Tenants["umbrella"].TLS.Required = &yes }, user: 530, code: 503},
		"certificate": {change: func(c *config.Config) {
			c.Tenants["acme"].TLS.ClientCertificates = config.ClientCertificates{CAFile: c.TLS.CertFile, Required: true}
		}, encrypted: true, user: 331, code: 530, asked: "bob@"},
		"certificate-elsewhere": {change: func(c *config.Config) {
			c.Tenants["umbrella"].TLS.ClientCertificates = config.ClientCertificates{CAFile: c.TLS.CertFile, Required: true}
		}, encrypted: true, user: 331, code: 230, asked: "bob@"},
		"network": {change: func(c *config.Config) {
			c.Tenants["acme"].Limits.Tenant.Deny = networks(t, "127.0.0.0/8")
		}, user: 331, code: 421, asked: "bob@"},
		"sessions": {change: func(c *config.Config) { c.Tenants["acme"].Limits.Tenant.Sessions = 1 }, user: 331, code: 421,
			asked: "bob@"},
	} {
		t.Run(name, func(t *testing.T) {
			hook := newTenantHook(t, map[string]string{"bob": "acme", "alice": "acme"})
			s, cfg := withService(t, hook)
			no := false
			cfg.TLS.Required = &no
			dir := t.TempDir()
			cfg.TLS.CertFile, cfg.TLS.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
			certtest.Write(t, cfg.TLS.CertFile, cfg.TLS.KeyFile, &x509.Certificate{})
			tc.change(cfg)
			srv := start(t, cfg, Options{AWS: s.AWSConfig()})
			if name == "sessions" {
				ftptest.Dial(t, srv.Addr().String()).Login("alice", servicetest.Password)
			}
			c := ftptest.Dial(t, srv.Addr().String())
			if tc.encrypted {
				c.Command(234, "AUTH TLS")
				must.OK(t, c.StartTLS(&tls.Config{InsecureSkipVerify: true}))
			}
			c.Command(tc.user, "USER bob")
			c.Command(tc.code, "PASS "+servicetest.Password)
			if asked := hook.requests(); asked != tc.asked {
				t.Errorf("the hook got %q, want %q", asked, tc.asked)
			}
		})
	}
}

// The audit log tells of a right password without a tenant.
func TestAuditOfAWrongTenant(t *testing.T) {
	hook := newTenantHook(t, map[string]string{"lost": "nowhere"})
	s, cfg := withService(t, hook)
	for _, line := range auditLines(t, cfg, s, func(c *ftptest.Client) {
		c.Command(331, "USER lost")
		c.Command(530, "PASS "+servicetest.Password)
	}) {
		if line["msg"] == "login" || line["event"] == "login" {
			if line["reason"] == "wrong_tenant" && line["user"] == "lost" && line["tenant"] == nil {
				return
			}
			t.Errorf("the line is %v", line)
		}
	}
	t.Error("the audit log lacks the login")
}

// A reload replaces the service and keeps sessions. A tenant that gets an auth of its own leaves it.
func TestReloadOfTheService(t *testing.T) {
	first := newTenantHook(t, map[string]string{"bob": "acme"})
	second := newTenantHook(t, map[string]string{"bob": "umbrella"})
	s, cfg := withService(t, first)
	cfg.Auth.Cache = time.Minute
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	login := func(user string, code int, asked string) *ftptest.Client {
		t.Helper()
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(331, "USER "+user)
		c.Command(code, "PASS "+servicetest.Password)
		if got := strings.Trim(first.requests()+"|"+second.requests(), " "); got != asked {
			t.Errorf("%s: the hooks got %q, want %q", user, got, asked)
		}
		return c
	}
	bob := login("bob", 230, "bob@|")
	login("bob", 230, "|") // from the cache
	other := changed(t, cfg, func(next *config.Config) { next.Auth.Hook.URL = second.url })
	reload(t, srv, other)
	login("bob", 230, "|bob@")
	bob.Store("/file", "content") // of the session before, in the tenant before
	if keys := s3test.Objects(t, s.Client(), cfg.Tenants["acme"].Bucket); len(keys) != 1 {
		t.Errorf("the bucket of the tenant before has %q", keys)
	}
	own := changed(t, other, func(next *config.Config) {
		next.Tenants["umbrella"].Auth.Hook = config.Hook{URL: first.url}
	}, "umbrella")
	reload(t, srv, own)
	login("bob", 530, "|bob@")
	login("bob@umbrella", 530, "bob@umbrella|")
	removed := changed(t, other, func(next *config.Config) { delete(next.Tenants, "umbrella") })
	reload(t, srv, removed)
	login("bob", 530, "|bob@acme") // now the only tenant
}
