package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// writeFile writes a file and creates its folders.
func writeFile(t *testing.T, name, text string) {
	t.Helper()
	must.OK(t, errors.Join(
		os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)))
}

// loadText loads a configuration from a file with this text.
func loadText(t *testing.T, text string) *Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "babelftp.yaml")
	writeFile(t, file, text)
	cfg, err := Load(file, nil)
	must.OK(t, err)
	return cfg
}

// A default is not applied if it would make a configured key invalid.
func TestDefaultsGiveWay(t *testing.T) {
	for _, tc := range []struct {
		text string
		got  func(*Config) any
		want any
	}{
		{"", func(c *Config) any { return c.MetricsListen }, "127.0.0.1:9121"},
		{`metrics_listen: ""`, func(c *Config) any { return c.MetricsListen }, ""},
		{`listen: ":9121"`, func(c *Config) any { return c.MetricsListen }, ""},
		{"passive: {ports: 9000-9200}", func(c *Config) any { return c.MetricsListen }, ""},
		{"", func(c *Config) any { return c.AdminSocket }, DefaultAdminSocket},
		{"", func(c *Config) any { return c.OptionalSocket }, true},
		{"admin_socket: /run/a.sock", func(c *Config) any { return c.OptionalSocket }, false},
		{`admin_socket: ""`, func(c *Config) any { return c.AdminSocket }, ""},
		{"", func(c *Config) any { return c.Limits.FailedLoginDelay }, 15 * time.Second},
		{"limits: {login_timeout: 5s}", func(c *Config) any { return c.Limits.FailedLoginDelay }, 2500 * time.Millisecond},
		{"limits: {address: {sessions: 0}}", func(c *Config) any { return c.Limits.FailedLoginDelay }, time.Duration(0)},
		{"part_size: 16MiB", func(c *Config) any { return c.Memory }, 256 * bytesize.MiB},
		{"part_size: 512MiB", func(c *Config) any { return c.Memory }, bytesize.GiB},
		{"", func(c *Config) any { return c.Tenants["acme"].Resume }, KeepInterrupted},
		{"abandoned_uploads: 0s", func(c *Config) any { return c.Tenants["acme"].Resume }, Resume("")},
		{"s3: {profile: aws-directory}", func(c *Config) any { return c.Tenants["acme"].Resume }, Resume("")},
		{"", func(c *Config) any { return c.TLS.IsRequired() }, false},
	} {
		if got := tc.got(loadText(t, minimal+tc.text+"\n")); got != tc.want {
			t.Errorf("with %q: got %v, want %v", tc.text, got, tc.want)
		}
	}
}

// The timeout of a service is shorter than the login timeout.
func TestTimeoutOfAService(t *testing.T) {
	cfg := loadText(t, `
limits: {login_timeout: 4s}
tenants:
  hook: {bucket: files, auth: {hook: {url: "https://auth.example.com"}}}
  ldap: {bucket: files, auth: {ldap: {urls: ["ldaps://ldap.example.com"], user_dn: "uid={user},dc=example"}}}
`)
	if hook, ldap := cfg.Tenants["hook"].Auth.Hook.Timeout, cfg.Tenants["ldap"].Auth.LDAP.Timeout; hook !=
		2*time.Second || ldap != 2*time.Second {
		t.Errorf("got timeout %s of the hook and %s of LDAP", hook, ldap)
	}
}

// TLS is required if there is a certificate, unless the configuration disables it.
func TestTLSIsRequired(t *testing.T) {
	no := false
	for name, tc := range map[string]struct {
		tls  TLS
		want bool
	}{
		"without": {TLS{}, false}, "certificate": {TLS{CertFile: "a", KeyFile: "b"}, true},
		"acme": {TLS{ACME: ACME{HTTPListen: ":80"}}, true}, "off": {TLS{CertFile: "a", KeyFile: "b", Required: &no}, false},
	} {
		if got := tc.tls.IsRequired(); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

// Services of a tenant use the CA file of the tenant, or else of the server.
func TestAuthorities(t *testing.T) {
	dir := t.TempDir()
	server, tenant := filepath.Join(dir, "server.pem"), filepath.Join(dir, "tenant.pem")
	for _, file := range []string{server, tenant} {
		writeFile(t, file, must.NewAuthority(t, "one").Certificate)
	}
	cfg := loadText(t, fmt.Sprintf(`
ca_file: %q
admin: {listen: "127.0.0.1:9122", oidc: {issuer: "https://login.example.com", client_id: x, roles: {viewer: [x]}}}
auth: {hook: {url: "https://auth.example.com"}}
audit: {webhook: {url: "https://hooks.example.com", secret: 0123456789abcdef}}
tenants:
  own:
    bucket: files
    ca_file: %q
    auth: {ldap: {urls: ["ldaps://ldap.example.com"], user_dn: "uid={user},dc=example"}}
    inspect: {hook: {url: "https://scan.example.com", secret: 0123456789abcdef}}
  other: {bucket: others, webhook: {url: "https://hooks.example.com", secret: 0123456789abcdef}}
`, server, tenant))
	own, other := cfg.Tenants["own"], cfg.Tenants["other"]
	got := []string{cfg.Admin.OIDC.CAFile, cfg.Auth.Hook.CAFile, cfg.Audit.Webhook.CAFile, other.Webhook.CAFile,
		own.Auth.LDAP.CAFile, own.Inspect.Hook.CAFile, own.Webhook.CAFile, other.Inspect.Hook.CAFile}
	if want := []string{server, server, server, server, tenant, tenant, "", ""}; !slices.Equal(got, want) {
		t.Errorf("got CA file %q, want %q", got, want)
	}
}
