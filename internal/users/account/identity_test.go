package account

import (
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Which spellings count as the same name depends only on what the client sends, and not on which users exist.
// Administrators see names that are in the configuration, but no other names.
func TestIdentityOfFailures(t *testing.T) {
	const nfc, nfd = "re\u0301ne\u0301e", "r\u00e9n\u00e9e"
	users := func(names ...string) map[string]*config.User {
		all := map[string]*config.User{}
		for _, name := range names {
			all[name] = &config.User{PasswordHash: servicetest.PasswordHash()}
		}
		return all
	}
	acme := &config.Tenant{Bucket: "acme-data", Hosts: []string{"ftp.acme.example"}, Users: users("alice", "both", nfc)}
	umbrella := &config.Tenant{Bucket: "umbrella-data", Users: users("bob", "both")}
	for name, tenants := range map[string]map[string]*config.Tenant{
		"one-tenant":  {"acme": acme},
		"two-tenants": {"acme": acme, "umbrella": umbrella},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.Tenants = tenants
			r := registryOf(t, cfg)
			id := func(host, user string) string { return r.identify(&LoginRequest{Host: host, User: user}).id }
			type spelling struct{ host, before, after string }
			spellings := []spelling{
				{"", "", ""}, {"", "", "@acme"}, {"ftp.acme.example", "", ""}, {"FTP.acme.example.", "", "@acme"},
				{"", "", "@umbrella"}, {"", "", "@"}, {"", "x", ""},
			}
			// all returns for each spelling the index of the first one with the same identity.
			all := func(name string) (same []int) {
				for _, s := range spellings {
					for first, other := range spellings {
						if id(other.host, other.before+name+other.after) == id(s.host, s.before+name+s.after) {
							same = append(same, first)
							break
						}
					}
				}
				return same
			}
			want := all("nobody")
			for _, name := range []string{"alice", "bob", "both", nfc, nfd, strings.Repeat("long", 100)} {
				got := all(name)
				for i := range want {
					if got[i] != want[i] {
						t.Errorf(
							"spellings %v of %s: got %v as one user, want %v", spellings, name, got,
							want)
						break
					}
				}
			}
			if id("", nfc) != id("", nfd) || id("", "x"+nfc) != id("", "x"+nfd) {
				t.Error("Unicode forms of a name are not the same")
			}
			if got := id("", "alice@acme"); got != "alice@acme" {
				t.Errorf("failures of alice@acme: got identity %q", got)
			}
			for _, user := range []string{"hunter2", "hunter2@acme", "hunter2@umbrella"} {
				if got := id("", user); strings.Contains(got, "hunter2") || len(got) > maxIdentity {
					t.Errorf("failures of %s: got identity %q", user, got)
				}
			}
		})
	}
}
