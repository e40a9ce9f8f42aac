package server

import (
	"testing"

	"github.com/babelftp/babelftp/internal/config"
)

func TestFindUser(t *testing.T) {
	cfg := config.Default()
	hash := passwordHash(t)
	users := func(names ...string) map[string]*config.User {
		m := map[string]*config.User{}
		for _, name := range names {
			m[name] = &config.User{PasswordHash: hash}
		}
		return m
	}
	cfg.Tenants = map[string]*config.Tenant{
		"acme":     {Bucket: "acme-data", Hosts: []string{"ftp.acme.example"}, Users: users("alice", "carol", "Jos\u00e9")},
		"umbrella": {Bucket: "umbrella", Hosts: []string{"xn--mnchen-3ya.example"}, Users: users("alice", "dave@home")},
		"zebra":    {Bucket: "zebra", Users: users("erin")},
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	bundle, err := cfg.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	d := newDirectory(cfg, bundle, nil)
	for _, tc := range []struct {
		name, host, login string
		want              string // the tenant, empty for nobody
	}{
		{"name-of-one-tenant", "", "carol", "acme"},
		{"name-of-two-tenants", "", "alice", ""},
		{"qualified", "", "alice@umbrella", "umbrella"},
		{"qualified-by-an-unknown-tenant", "", "alice@nowhere", ""},
		{"qualified-by-the-tenant-of-another", "", "carol@umbrella", ""},
		{"with-an-at", "", "dave@home", "umbrella"},
		{"with-an-at-and-qualified", "", "dave@home@umbrella", "umbrella"},
		{"tenant-without-host", "", "erin", "zebra"},
		{"host", "ftp.acme.example", "alice", "acme"},
		{"host-in-another-form", "FTP.ACME.example.", "alice", "acme"},
		{"host-in-unicode", "m\u00fcnchen.example", "alice", "umbrella"},
		{"host-and-qualified", "ftp.acme.example", "alice@acme", "acme"},
		{"host-of-another", "ftp.acme.example", "alice@umbrella", ""},
		{"host-without-the-user", "ftp.acme.example", "erin", ""},
		{"unknown-host", "ftp.example", "carol", ""},
		{"other-unicode-form", "", "Jose\u0301", "acme"},
		{"other-case", "", "Carol", ""},
		{"empty", "", "", ""},
		{"at-alone", "", "@", ""},
		{"tenant-alone", "", "@acme", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if u := d.find(tc.host, tc.login); u != nil {
				got = u.tenant.Name
			}
			if got != tc.want {
				t.Errorf("found in %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHost(t *testing.T) {
	cfg := config.Default()
	cfg.Tenants = map[string]*config.Tenant{"acme": {Hosts: []string{"ftp.acme.example", "2001:db8::7"}}}
	bundle, err := cfg.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	d := newDirectory(cfg, bundle, nil)
	for host, want := range map[string]bool{
		"ftp.acme.example": true, "FTP.Acme.Example": true, "2001:DB8:0::7": true, "acme.example": false, "": false, "*": false,
	} {
		t.Run(host, func(t *testing.T) {
			tenant, ok := d.Host(host)
			if ok != want || ok && tenant.Name != "acme" {
				t.Errorf("found %v, want %v", ok, want)
			}
		})
	}
}

func TestRootOfAUser(t *testing.T) {
	for _, tc := range []struct{ name, prefix, root, want string }{
		{"neither", "", "", ""},
		{"prefix", "inbox/", "", "inbox/"},
		{"root", "", "/alice", "alice/"},
		{"both", "inbox/", "/teams/alice", "inbox/teams/alice/"},
		{"root-of-everything", "inbox/", "/", "inbox/"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u := newUser(nil, &config.Tenant{Prefix: tc.prefix}, "alice", &config.User{Root: tc.root})
			if u.prefix != tc.want {
				t.Errorf("the user sees keys with %q, want %q", u.prefix, tc.want)
			}
		})
	}
}
