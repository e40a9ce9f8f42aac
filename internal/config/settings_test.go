package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// allSettings has a value for each key of a user, in canonical form.
const allSettings = `{
	"certificates": ["subject:CN=a,O=b", "email:a@b.example"],
	"disabled": true,
	"must_change_password": true,
	"expires": "2037-01-31",
	"home": "/in",
	"root": "/a b",
	"permissions": ["list", "read"],
	"path_permissions": {"/in/*.csv": ["write"], "/": []},
	"files": {"deny": ["*.exe"], "max_size": "1GiB"},
	"overwrite": "deny",
	"language": "pt-BR",
	"timezone": "Asia/Tokyo",
	"quota": "10GiB",
	"compatibility": {"charset": "euc-jp, shift_jis", "ascii": "keep", "chmod": "ignore", "backslash": "separator",
		"stor_after_rest": "truncate", "control_characters": "refuse", "normalization": "nfd"},
	"tls": {"required": false},
	"limits": {"sessions": 5, "transfers": 3, "upload_rate": "2MiB", "download_rate": "1500B",
		"allow": ["203.0.113.0/24"], "deny": ["::/0"]}
}`

// decoded parses JSON with exact numbers.
func decoded(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	must.OK(t, d.Decode(&v))
	return v
}

// The settings of a user are the same after they were decoded and encoded, and the test has all of them.
func TestSettings(t *testing.T) {
	u, err := DecodeUser("users.yaml", decoded(t, allSettings))
	must.OK(t, err)
	text, err := json.Marshal(u.Settings())
	must.OK(t, err)
	if got, want := decoded(t, string(text)), decoded(t, allSettings); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	settings := u.Settings()
	for _, key := range UserKeys() {
		first, _, _ := strings.Cut(key, ".")
		if _, set := settings[first]; !set && !strings.HasPrefix(key, "password_hash") {
			t.Errorf("the test lacks %s", key)
		}
	}
	u, err = DecodeUser("users.yaml", map[string]any{"password_hash": "$2b$secret", "expires": "2027-01-31"})
	must.OK(t, err)
	if text, _ := json.Marshal(u.Settings()); bytes.Contains(text, []byte("secret")) || u.PasswordHash.Empty() {
		t.Errorf("got %s", text)
	}
	if _, err = DecodeUser("users.yaml", map[string]any{"quota": "big"}); err == nil {
		t.Error("an invalid setting was accepted")
	}
}

// A patch sets and removes single keys. Unknown keys are reported with their path.
func TestParseUserPatch(t *testing.T) {
	changes, problems := ParseUserPatch(decoded(t, `{
		"quota": "10GiB", "limits": {"sessions": 5, "allow": null}, "tls": null, "path_permissions": {"/a.b": ["list"]},
		"compatibility": {"charset": ["euc-jp"]}, "files": {}, "permissions": [], "disabled": true, "home": {"a": 1.5}
	}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := map[string]string{}
	for _, c := range changes {
		got[c.Key] = "removed"
		if c.Value != nil {
			var v any
			must.OK(t, c.Value.Decode(&v))
			text, err := json.Marshal(v)
			must.OK(t, err)
			got[c.Key] = string(text)
		}
	}
	want := map[string]string{"quota": `"10GiB"`, "limits.sessions": "5", "limits.allow": "removed", "tls": "removed",
		"path_permissions./a.b": `["list"]`, "compatibility.charset": `["euc-jp"]`, "permissions": "[]", "disabled": "true",
		"home": `{"a":"1.5"}`}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	_, problems = ParseUserPatch(decoded(t, `{"quotas": 1, "limits": {"session": 5, "server": {"sessions": 1}}, "": 1}`))
	paths := map[string]string{}
	for _, p := range problems {
		paths[p.Path] = p.Message
	}
	for path, message := range map[string]string{"quotas": "did you mean quota?", "limits.session": "limits.sessions",
		"limits.server": "unknown key", "": "unknown key"} {
		if !strings.Contains(paths[path], message) {
			t.Errorf("%s: got %q, want %q", path, paths[path], message)
		}
	}
	if len(problems) != len(paths) {
		t.Errorf("got %v", problems)
	}
}
