package account

import (
	"net/netip"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Custom resources do not change what happens to clients of other tenants that have not selected a tenant.
func TestResourcesAndNeighbors(t *testing.T) {
	users := func(names ...string) map[string]*config.User {
		all := map[string]*config.User{}
		for _, name := range names {
			all[name] = &config.User{PasswordHash: servicetest.PasswordHash()}
		}
		return all
	}
	var sjis value.Encoding
	must.OK(t, sjis.UnmarshalText([]byte("shift_jis")))
	var anywhere value.Network
	must.OK(t, anywhere.UnmarshalText([]byte("0.0.0.0/0")))
	required := true
	resource := func(namespace string, names ...string) *config.Tenant {
		return &config.Tenant{
			Bucket: namespace, Namespace: namespace, Users: users(names...), TLS: config.TenantTLS{Required: &required},
			CompatibilityByNetwork: map[value.Network]*config.Compatibility{anywhere: {Charset: sjis}},
		}
	}
	acme := func() *config.Tenant { return &config.Tenant{Bucket: "acme-data", Users: users("alice")} }
	withService := acme()
	withService.Auth.Hook.URL = "http://127.0.0.1:1/"
	server := config.Auth{Hook: config.Hook{URL: "http://127.0.0.1:1/"}}
	resources := map[string]*config.Tenant{
		"team-a_x": resource("team-a", "alice", "bob", "both"), "team-b_y": resource("team-b", "both"),
	}
	for name, tc := range map[string]struct {
		files map[string]*config.Tenant
		auth  config.Auth
		// Users found by a plain name, and the tenant that is asked about other names.
		found map[string]string
		only  string
	}{
		"no-files":         {nil, config.Auth{}, map[string]string{"alice": "team-a_x", "bob": "team-a_x", "both": ""}, ""},
		"files":            {map[string]*config.Tenant{"acme": acme()}, config.Auth{}, map[string]string{"alice": "acme", "bob": "team-a_x"}, "acme"},
		"service":          {map[string]*config.Tenant{"acme": withService}, config.Auth{}, map[string]string{"alice": "acme", "bob": ""}, "acme"},
		"server's-service": {map[string]*config.Tenant{"acme": acme()}, server, map[string]string{"alice": "acme", "bob": ""}, "acme"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Auth, cfg.Tenants = tc.auth, map[string]*config.Tenant{}
			for _, tenants := range []map[string]*config.Tenant{tc.files, resources} {
				for name, tenant := range tenants {
					cfg.Tenants[name] = tenant
				}
			}
			r := registryOf(t, cfg)
			d := r.current.Load()
			for user, want := range tc.found {
				got := ""
				if u := d.lookUp("", user); u != nil {
					got = u.Tenant.Name
				}
				if got != want {
					t.Errorf("%s: found in %q, want %q", user, got, want)
				}
			}
			if u := d.lookUp("", "both@team-b_y"); u == nil || u.Tenant.Name != "team-b_y" {
				t.Errorf("both@team-b_y: got %v", u)
			}
			only := ""
			if d.only != nil {
				only = d.only.Name
			}
			if only != tc.only || d.strictTLS || r.Charset(netip.MustParseAddr("192.0.2.1")) != nil ||
				len(tc.files) == 0 && d.knows(nil, "alice") || d.knows(nil, "bob") {
				t.Errorf("the only tenant is %q, want %q; strict TLS: %t", only, tc.only, d.strictTLS)
			}
		})
	}
}
