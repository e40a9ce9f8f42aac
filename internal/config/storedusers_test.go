package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// loadWithState loads a configuration with shared state.
func loadWithState(t *testing.T, tenants string) (*Config, error) {
	t.Helper()
	const name = "babelftp.yaml"
	text := "state: {bucket: shared, keys: " + strings.Repeat("A", 43) + "=}\ntenants:\n" + tenants
	return LoadWith(name, nil, map[string][]byte{name: []byte(text)})
}

// parseUser returns a stored user with these settings.
func parseUser(t *testing.T, settings string) *User {
	t.Helper()
	u, err := ParseUser("item", []byte("users: {x: {"+settings+"}}"), "x", false)
	must.OK(t, err)
	return u
}

const off = "disabled: true"

func TestMergeUsers(t *testing.T) {
	type stored map[string]string // settings by user@tenant, where the tenant follows the last @
	for _, tt := range []struct {
		name    string
		tenants string
		stored  stored
		want    string   // the users in the result
		left    []string // parts of the problems
	}{
		{name: "no-store", tenants: " a: {bucket: a-data, users: {bob: {disabled: true}}}", stored: stored{"eve@a": off}, want: "bob@a"},
		{name: "empty", tenants: " a: {bucket: a-data, users_store: state}"},
		{name: "both", tenants: " a: {bucket: a-data, users_store: state, users: {bob: {disabled: true}}}",
			stored: stored{"eve@a": off, "ève@a": off}, want: "bob@a eve@a ève@a"},
		{name: "invalid", tenants: " a: {bucket: a-data, users_store: state, languages: [en]}", stored: stored{
			"ok@a": off, "no-password@a": "root: /x", "language@a": off + ", language: fr", "root@a": off + ", root: x",
			"certificate@a": "certificates: [sha256:" + strings.Repeat("a", 64) + "]", "must@a": off + ", must_change_password: true",
		}, want: "ok@a", left: []string{"certificates: requires", "language: ", "must_change_password: requires",
			"no-password.password_hash: is missing", `root.root: "x" is not absolute`}},
		{name: "taken", tenants: ` a: {bucket: a-data, users_store: state, users: {"e\u0301": {disabled: true}}}`,
			stored: stored{"é@a": off + ", root: /x", "b@a": off}, want: "b@a e\u0301@a", left: []string{"takes precedence"}},
		{name: "the-same", tenants: ` a: {bucket: a-data, users_store: state, users: {b: {disabled: true}}}`,
			stored: stored{"b@a": off}, want: "b@a"},
		{name: "same-name-in-two-tenants", stored: stored{"bob@a": off, "bob@b": off}, want: "bob@a bob@b",
			tenants: " a: {bucket: a-data, users_store: state}\n b: {bucket: b-data, users_store: state}"},
		{name: "login-name-of-another", stored: stored{"bob@a@b": off, "bob@a": off, "al@b": off}, want: "al@b bob@a",
			tenants: " a: {bucket: a-data, users_store: state}\n b: {bucket: b-data, users_store: state}",
			left:    []string{"bob of the tenant a"}},
		{name: "login-name-of-a-configured-user", stored: stored{"bob@a": off, "al@a": off}, want: "al@a bob@a@b",
			tenants: " a: {bucket: a-data, users_store: state}\n b: {bucket: b-data, users: {bob@a: {disabled: true}}}",
			left:    []string{"bob@a of the tenant b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := loadWithState(t, tt.tenants)
			must.OK(t, err)
			users := StoredUsers{}
			for name, settings := range tt.stored {
				at := strings.LastIndexByte(name, '@')
				if users[name[at+1:]] == nil {
					users[name[at+1:]] = map[string]*User{}
				}
				users[name[at+1:]][name[:at]] = parseUser(t, settings)
			}
			merged, problems := cfg.MergeUsers(users, false, nil)
			var got []string
			for tenant, c := range merged.Tenants {
				for name := range c.Users {
					got = append(got, name+"@"+tenant)
				}
			}
			slices.Sort(got)
			if strings.Join(got, " ") != tt.want {
				t.Errorf("users %q, want %q", got, tt.want)
			}
			if len(problems) != len(tt.left) {
				t.Errorf("problems %q", problems)
			}
			for i := range min(len(problems), len(tt.left)) {
				if p := problems[i]; !strings.Contains(p.Reason, tt.left[i]) {
					t.Errorf("%s@%s: %s, want %s", p.User, p.Tenant, p.Reason, tt.left[i])
				}
			}
			again, _ := cfg.MergeUsers(users, false, merged)
			other, _ := cfg.MergeUsers(users, true, merged)
			for name, tenant := range merged.Tenants {
				if again.Tenants[name] != tenant {
					t.Errorf("tenant %s is another one although nothing has changed", name)
				}
				if stored := tenant.UsersStore != ""; (other.Tenants[name] != tenant) != stored || other.Tenants[name].UsersUnknown != stored {
					t.Errorf("tenant %s does not say that its users are unknown", name)
				}
			}
		})
	}
}

func TestParseUser(t *testing.T) {
	for text, problem := range map[string]string{
		"users: {a: {root: /x/../y}}":                      "",
		"users: {a: {password_hash_file: /etc/shadow}}":    "unknown key",
		"users: {a: {quota: x}}":                           "quota",
		"users: {a: {future_key: 1}}":                      "unknown key",
		"users: {a: {":                                     "invalid YAML",
		"tenants: {b: {bucket: x}}\nusers: {a: {root: /}}": "unknown key",
	} {
		u, err := ParseUser("s3://shared/item", []byte(text), "a", false)
		switch {
		case problem == "" && (err != nil || u.Root != "/y"):
			t.Errorf("%s: %v", text, err)
		case problem != "" && (err == nil || !strings.Contains(err.Error(), problem) || !strings.Contains(err.Error(), "s3://shared/item")):
			t.Errorf("%s: %v, want %s", text, err, problem)
		}
	}
}

func TestUsersStore(t *testing.T) {
	for name, tt := range map[string]struct{ tenant, problem string }{
		"alone":            {"users_store: state", ""},
		"with-a-file":      {"users_store: state, users_file: testdata/users.yaml", "cannot read"},
		"with-an-old-one":  {"users_store: state, auth: {ftp: {address: 'old:21'}}", ""},
		"no-store-for-old": {"users: {a: {disabled: true}}, auth: {ftp: {address: 'old:21'}}", "requires users_file or users_store"},
		"unknown":          {"users_store: file", `unknown value "file": write state`},
	} {
		_, err := loadWithState(t, " a: {bucket: a-data, "+tt.tenant+"}\n")
		if tt.problem == "" && err != nil || tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) {
			t.Errorf("%s: %v, want %q", name, err, tt.problem)
		}
	}
	const alone = "tenants: {a: {bucket: a-data, users_store: state}}"
	_, err := LoadWith("x.yaml", nil, map[string][]byte{"x.yaml": []byte(alone)})
	if err == nil || !strings.Contains(err.Error(), "tenants.a.users_store: requires the section state") {
		t.Errorf("users_store without state: %v", err)
	}
}

func TestParseUserInFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.yaml")
	must.WriteFile(t, filepath.Join(filepath.Dir(file), "hash"), hash)
	text := []byte("users: {a: {password_hash_file: hash}, b: {}}")
	if u, err := ParseUser(file, text, "a", true); err != nil || u.PasswordHash.Reveal() != hash {
		t.Errorf("ParseUser = %+v, %v", u, err)
	}
	if u, err := ParseUser(file, text, "c", true); err != nil || u != nil {
		t.Errorf("ParseUser of a missing user = %+v, %v", u, err)
	}
}

// must_change_password needs a way to change it.
func TestMustChangePassword(t *testing.T) {
	for _, tt := range []struct{ tenant, user, problem string }{
		{"", "permissions: [list, password]", ""},
		{"permissions: [list, password]", "root: /", ""},
		{"", "root: /", "requires the permission"},
		{"permissions: [list]", "permissions: [password]", "requires the permission"},
	} {
		_, err := loadWithState(t, fmt.Sprintf(" a: {bucket: a-data, users: {u: {must_change_password: true, password_hash: %q, %s}}, %s}",
			hash, tt.user, tt.tenant))
		if tt.problem == "" && err != nil || tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) {
			t.Errorf("%s, %s: %v, want %q", tt.tenant, tt.user, err, tt.problem)
		}
	}
}

func TestCheckUser(t *testing.T) {
	cfg, err := loadWithState(t, " a: {bucket: a-data, users: {alice: {disabled: true}, b@c: {disabled: true}}}\n"+
		" c: {bucket: c-data, hosts: [c.example], users: {carol: {disabled: true}}}\n")
	must.OK(t, err)
	for name, tt := range map[string]struct{ tenant, user, settings, problem string }{
		"new":       {"a", "bob", off, ""},
		"changed":   {"a", "alice", off + ", root: /x", ""},
		"invalid":   {"a", "alice", "root: /x", "tenants.a.users.alice.password_hash: is missing"},
		"ambiguous": {"a", "carol", off, "tenants.a.users.carol: the tenant c has a user with this name too"},
		"login":     {"a", "carol@c", off, "is also the login name of the user carol of the tenant c"},
		"shadowed":  {"c", "b", off, "is also the name of a user of the tenant a"},
	} {
		err := cfg.CheckUser(tt.tenant, tt.user, parseUser(t, tt.settings))
		if tt.problem == "" && err != nil || tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) {
			t.Errorf("%s: %v, want %q", name, err, tt.problem)
		}
	}
}
