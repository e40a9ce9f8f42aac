package auth

import (
	"context"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// searching returns a configuration that searches for users over LDAPS.
func searching(s *servicetest.Directory) *config.Auth {
	return &config.Auth{LDAP: config.LDAP{
		URLs: []string{s.LDAPS}, CAFile: s.CAFile, BaseDN: servicetest.People, BindDN: servicetest.BindDN,
		BindPassword: value.NewSecret(servicetest.DirectoryPassword),
		Timeout:      time.Minute,
	}}
}

// binding returns a configuration that binds with a DN pattern over StartTLS.
func binding(s *servicetest.Directory) *config.Auth {
	return &config.Auth{LDAP: config.LDAP{
		URLs: []string{s.LDAP}, CAFile: s.CAFile, UserDN: "uid={user}," + servicetest.People, Timeout: time.Minute,
	}}
}

func newSource(t *testing.T, cfg *config.Auth) Source {
	t.Helper()
	source, err := New(cfg)
	must.OK(t, err)
	return source
}

func authenticate(t *testing.T, s Source, user, password string) (*config.User, error) {
	t.Helper()
	response, err := ask(t, s, user, password)
	if err != nil {
		return nil, err
	}
	return response.User, nil
}

func ask(t *testing.T, s Source, user, password string) (*Response, error) {
	t.Helper()
	found, err := s.Authenticate(t.Context(), &Request{Tenant: "acme", User: user, Password: password})
	if err != nil && (strings.Contains(err.Error(), "horse") || len(user) > 2 && strings.Contains(err.Error(), user)) {
		t.Errorf("the error contains the name or the password: %v", err)
	}
	return found, err
}

// The directory verifies passwords, and the name must match the entry exactly.
func TestDirectory(t *testing.T) {
	s := servicetest.StartDirectory(t)
	anonymous := searching(s)
	anonymous.LDAP.BindDN, anonymous.LDAP.BindPassword = "", value.Secret{}
	for kind, cfg := range map[string]*config.Auth{"search": searching(s), "bind": binding(s), "anonymous": anonymous} {
		t.Run(kind, func(t *testing.T) {
			source := newSource(t, cfg)
			for _, user := range []string{"bob", "*", "a,ou=b", "(x)", " #+;<>=\"", "été", `back\slash`, ".."} {
				if _, err := authenticate(t, source, user, servicetest.DirectoryPassword); err != nil {
					t.Errorf("%q: %v", user, err)
				}
			}
			for name, tc := range map[string]struct{ user, password string }{
				"wrong-password":    {"bob", "wrong"},
				"empty-password":    {"bob", ""},
				"nul":               {"bob", "\x00"},
				"nul-at-the-end":    {"bob", servicetest.DirectoryPassword + "\x00"},
				"nul-in-the-name":   {"bob\x00", servicetest.DirectoryPassword},
				"unknown":           {"nobody", servicetest.DirectoryPassword},
				"empty-name":        {"", servicetest.DirectoryPassword},
				"any":               {"b*", servicetest.DirectoryPassword},
				"filter":            {"*)(uid=*", servicetest.DirectoryPassword},
				"filter-or":         {"x)(|(uid=bob", servicetest.DirectoryPassword},
				"name-in-upper":     {"BOB", servicetest.DirectoryPassword},
				"name-with-a-space": {"bob ", servicetest.DirectoryPassword},
				"dn":                {"bob," + servicetest.People, servicetest.DirectoryPassword},
				"dn-elsewhere":      {"x,cn=babelftp," + servicetest.BaseDN, servicetest.DirectoryPassword},
				"two-attributes":    {"bob+cn=bob", servicetest.DirectoryPassword},
				"hex-dn":            {"#04036f6262", servicetest.DirectoryPassword},
				"long":              {strings.Repeat("a", 3000), servicetest.DirectoryPassword},
			} {
				if _, err := authenticate(t, source, tc.user, tc.password); !errors.Is(err, ErrRefused) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if idle := len(source.(*directory).idle); idle != 1 {
				t.Errorf("got %d open connections, want 1", idle)
			}
		})
	}
}

// Attributes and groups override the default settings of the configuration.
func TestDirectorySettings(t *testing.T) {
	s := servicetest.StartDirectory(t)
	cfg := searching(s)
	cfg.User = config.UserSettings{Root: "/home/{user}", Home: "/{user}", Quota: bytesize.MiB,
		Compatibility:   config.Compatibility{Chmod: config.IgnoreChmod},
		PathPermissions: map[string][]config.Permission{"/x": {config.List}}}
	cfg.LDAP.Attributes = config.Attributes{
		config.LDAPRoot: "ftpRoot", config.LDAPHome: "ftphome", config.LDAPQuota: "ftpQuota",
		config.LDAPLanguage: "preferredLanguage", config.LDAPPermissions: "ftpPermission",
		config.LDAPCompatibility: "ftpDevice"}
	grouped := binding(s)
	grouped.LDAP.Attributes = config.Attributes{config.LDAPGroups: "memberOf"}
	grouped.Groups = map[string][]config.Permission{
		"CN=readers, OU=Groups, " + servicetest.BaseDN: {config.Read, config.List},
		servicetest.Writers:                            {config.Write, config.Read},
	}
	for _, tc := range []struct {
		name, user string
		cfg        *config.Auth
		want       config.User
	}{
		{"own", "alice", cfg, config.User{
			Root: "/teams/alice", Home: "/in", Quota: 20, Language: language.CanadianFrench,
			Compatibility: config.Compatibility{
				Charset: servicetest.Encoding(t, "shift_jis"), ASCII: config.KeepLineEnds, Chmod: config.IgnoreChmod,
			},
			Permissions:     []config.Permission{config.List, config.Read, config.Write},
			PathPermissions: cfg.User.PathPermissions,
		}},
		{"configured", "bob", cfg, config.User{Root: "/home/bob", Home: "/bob", Quota: bytesize.MiB,
			Compatibility:   config.Compatibility{Chmod: config.IgnoreChmod},
			PathPermissions: cfg.User.PathPermissions}},
		{"two-groups", "alice", grouped,
			config.User{Permissions: []config.Permission{config.List, config.Read, config.Write}}},
		{"group", "bob", grouped, config.User{Permissions: []config.Permission{config.List, config.Read}}},
	} {
		if got, err := authenticate(t, newSource(t, tc.cfg), tc.user, servicetest.DirectoryPassword); err != nil ||
			!reflect.DeepEqual(got, &tc.want) {
			t.Errorf("%s: %+v, %v", tc.name, got, err)
		}
	}
	for _, tc := range []struct {
		name, user string
		cfg        *config.Auth
		refused    bool
		want       string
	}{
		{"relative", "carol", cfg, false, "user.root: \"relative\" is not absolute"},
		{"several-values", "dave", cfg, false, "ftpRoot has 2 values"},
		{"twice", "frank", cfg, false, `: write each key once, as in charset=shift_jis`},
		{"unknown-charset", "grace", cfg, false, `user.compatibility.charset: unknown charset "ebcdic"`},
		{"parent-as-name", "..", cfg, true, "cannot be used as a directory name"},
		{"path-as-name", "a/b", cfg, true, "cannot be used as a directory name"},
		{"no-group", "carol", grouped, true, "in none of the groups"},
	} {
		if _, err := authenticate(t, newSource(t, tc.cfg), tc.user, servicetest.DirectoryPassword); err == nil ||
			errors.Is(err, ErrRefused) != tc.refused ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	cfg.LDAP.Filter = "(!(employeeType=suspended))"
	if _, err := authenticate(t, newSource(t, cfg), "erin", servicetest.DirectoryPassword); !errors.Is(
		err, ErrRefused) {
		t.Errorf("filter: %v", err)
	}
	if _, err := authenticate(t, newSource(t, cfg), "bob", servicetest.DirectoryPassword); err != nil {
		t.Errorf("filter that the user meets: %v", err)
	}
}

// The tenant comes from an attribute. It is empty for entries without the attribute.
func TestDirectoryTenant(t *testing.T) {
	s := servicetest.StartDirectory(t)
	cfg := searching(s)
	cfg.LDAP.Attributes = config.Attributes{config.LDAPTenant: "OU"}
	for user, want := range map[string]string{"bob": "acme", "frank": "umbrella", "erin": "nowhere", "été": ""} {
		response, err := ask(t, newSource(t, cfg), user, servicetest.DirectoryPassword)
		if err != nil || response.Tenant != want {
			t.Errorf("%s: %+v, %v", user, response, err)
		}
	}
	if _, err := ask(t, newSource(t, cfg), "dave", servicetest.DirectoryPassword); err == nil ||
		!strings.Contains(err.Error(), "OU has 2 values") {
		t.Errorf("user of two tenants: %v", err)
	}
}

// A directory that does not respond or is misconfigured does not refuse logins.
func TestDirectoryDoesNotDecide(t *testing.T) {
	s := servicetest.StartDirectory(t)
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // never accepts a connection
	must.OK(t, err)
	defer silent.Close()
	for name, tc := range map[string]struct {
		cfg    *config.Auth
		change func(*config.LDAP)
		user   string
		want   string
	}{
		"down": {binding(s), func(l *config.LDAP) {
			l.URLs = []string{"ldap://127.0.0.1:1"}
		}, "bob", "connection refused"},
		"silent": {binding(s), func(l *config.LDAP) {
			l.URLs[0], l.Timeout = "ldap://"+silent.Addr().String(), time.Second/4
		}, "bob", "deadline exceeded"},
		"silent-under-tls": {binding(s), func(l *config.LDAP) {
			l.URLs[0], l.Timeout = "ldaps://"+silent.Addr().String(), time.Second/4
		}, "bob", "deadline exceeded"},
		"authority":           {binding(s), func(l *config.LDAP) { l.CAFile = "" }, "bob", "certificate"},
		"authority-under-tls": {searching(s), func(l *config.LDAP) { l.CAFile = "" }, "bob", "certificate"},
		"other-host": {searching(s), func(l *config.LDAP) {
			l.URLs[0] = strings.Replace(l.URLs[0], "127.0.0.1", "localhost", 1)
		}, "bob", "certificate"},
		"in-the-clear": {binding(s), func(l *config.LDAP) {
			l.StartTLS = new(bool)
		}, "bob", "Confidentiality Required"},
		"account": {searching(s), func(l *config.LDAP) {
			l.BindPassword = value.NewSecret("other")
		}, "bob", "bind_dn"},
		"base": {searching(s), func(l *config.LDAP) {
			l.BaseDN = "ou=none," + servicetest.BaseDN
		}, "bob", "No Such Object"},
		"base-elsewhere": {searching(s), func(l *config.LDAP) {
			l.BaseDN = "ou=elsewhere," + servicetest.People
		}, "bob", "Referral"},
		"user-elsewhere": {binding(s), func(l *config.LDAP) {
			l.UserDN = "uid={user},ou=elsewhere," + servicetest.People
		}, "bob", ""},
		"name-of-two": {searching(s), func(l *config.LDAP) {
			l.Attributes = config.Attributes{config.LDAPName: "mail"}
		}, "twin@acme.example", "several entries"},
		"all-servers": {searching(s), func(l *config.LDAP) {
			l.URLs = []string{"ldap://127.0.0.1:1", "ldap://127.0.0.1:2"}
		}, "bob", ":2: "},
		"no-directory-at-all": {searching(s), func(l *config.LDAP) {
			l.URLs[0] = strings.Replace(s.LDAP, "ldap:", "ldaps:", 1)
		}, "bob", ""},
		"no-tls-at-the-address": {binding(s), func(l *config.LDAP) {
			l.URLs[0] = strings.Replace(s.LDAPS, "ldaps:", "ldap:", 1)
		}, "bob", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.change(&tc.cfg.LDAP)
			_, err := authenticate(t, newSource(t, tc.cfg), tc.user, servicetest.DirectoryPassword)
			if err == nil || !strings.Contains(err.Error(), tc.want) ||
				errors.Is(err, ErrRefused) != (name == "user-elsewhere") {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newSource(t, binding(s)).Authenticate(ended, &Request{User: "bob", Password: "x"}); err == nil ||
		errors.Is(err, ErrRefused) {
		t.Errorf("after the end of the login: %v", err)
	}
	if _, err := New(
		&config.Auth{LDAP: config.LDAP{URLs: []string{"ldap://a"},
			CAFile: "none.pem"}}); err == nil {
		t.Error("missing error for a directory with an unknown authority")
	}
}

// A login tries the next server if one is down, even if an idle connection was closed.
func TestDirectoryServers(t *testing.T) {
	first, second := servicetest.StartDirectory(t), servicetest.StartDirectory(t)
	cfg := binding(first)
	cfg.LDAP.URLs = []string{first.LDAP, second.LDAP}
	cfg.LDAP.CAFile = servicetest.Bundle(t, first, second)
	source := newSource(t, cfg)
	for _, step := range []struct {
		name    string
		before  func()
		decides bool
	}{
		{"both", func() {}, true},
		{"second", first.Stop, true},
		{"none", second.Stop, false},
	} {
		step.before()
		if _, err := authenticate(t, source, "bob", servicetest.DirectoryPassword); (err == nil) != step.decides {
			t.Errorf("%s: %v", step.name, err)
		}
		if _, err := authenticate(t, source, "bob", "wrong"); errors.Is(err, ErrRefused) != step.decides {
			t.Errorf("%s: wrong password: %v", step.name, err)
		}
	}
}

// A probe finds errors that would make every login fail, and does not bind as a user.
func TestProbeOfADirectory(t *testing.T) {
	s := servicetest.StartDirectory(t)
	for name, tc := range map[string]struct {
		cfg    *config.Auth
		change func(*config.LDAP)
		want   string
	}{
		"search":      {searching(s), func(*config.LDAP) {}, ""},
		"bind":        {binding(s), func(*config.LDAP) {}, ""},
		"account":     {searching(s), func(l *config.LDAP) { l.BindPassword = value.NewSecret("other") }, "bind_dn: "},
		"base":        {searching(s), func(l *config.LDAP) { l.BaseDN = "ou=none," + servicetest.BaseDN }, "base_dn: "},
		"certificate": {binding(s), func(l *config.LDAP) { l.CAFile = "" }, "certificate"},
		"one-is-down": {binding(s), func(l *config.LDAP) { l.URLs = append(l.URLs, "ldap://127.0.0.1:1") }, ":1: "},
	} {
		tc.change(&tc.cfg.LDAP)
		err := Probe(t.Context(), tc.cfg)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
