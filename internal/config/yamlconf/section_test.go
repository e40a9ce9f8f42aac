package yamlconf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A document that is decoded entry by entry gives the same values, positions and problems as one that is decoded at
// once.
func TestSectionIsDecodedAsTheWhole(t *testing.T) {
	for name, text := range map[string]string{
		"block": "listen: x\nnamed:\n  one:\n    enabled: true\n  two: {ports: [1, 2]}\nidle_timeout: 3s\n",
		"comments": "# a\nnamed: # b\n\n  # c\n  one:\n    # d\n    enabled: true\n# e\n  two:\n    ports: " +
			"[1]\n# f\nlisten: x\n",
		"deeper": "named:\n      one:\n        enabled: true\n      two:\n        ports:\n        - 1\n    " +
			"    - 2\n",
		"carriage-return": "named:\r\n  one:\r\n    enabled: true\r\n  two:\r\n    ports: [1]\r\nlisten: x\r\n",
		"key-twice":       "named:\n  one: {enabled: true}\n  two: {enabled: true}\n  one: {enabled: false}\n",
		"section-twice":   "named:\n  one: {enabled: true}\nnamed:\n  two: {enabled: true}\n",
		"anchor":          "named:\n  one: &a {enabled: true}\n  two: *a\n",
		"flow":            "named: {one: {enabled: true}}\nlisten: x\n",
		"quoted-key":      "named:\n  \"one\": {enabled: true}\n",
		"no-entries":      "named:\nlisten: x\n",
		"null":            "named:\n  one:\n  two: {enabled: true}\n",
		"no-mapping":      "named:\n  one: 1\n  two:\n    enabled: perhaps\n    ports: [a]\n    more: x\n",
		"unknown-key":     "named:\n  one:\n    enable: true\nlisten: x\nnamde: 1\n",
		"two-documents":   "named:\n  one: {enabled: true}\n---\nlisten: x\n",
		"less-indented":   "named:\n    one:\n      enabled: true\n  two: {enabled: true}\n",
		"scalar":          "named: none\n",
	} {
		t.Run(name, func(t *testing.T) {
			var whole, parts settings
			wantAt, want := Loader{}.Decode("f.yaml", []byte(text), &whole)
			gotAt, got := Loader{Section: "named", Cache: &Cache{}}.Decode("f.yaml", []byte(text), &parts)
			want.Sort()
			got.Sort()
			if got.Error() != want.Error() || !reflect.DeepEqual(parts, whole) || !reflect.DeepEqual(gotAt, wantAt) {
				t.Errorf("%+v %v\n%v\nwant %+v %v\n%v", parts, gotAt, got, whole, wantAt, want)
			}
		})
	}
}

// A problem of an entry has its line in the document.
func TestSyntaxErrorInAnEntry(t *testing.T) {
	var s settings
	_, problems := Loader{Section: "named"}.Decode(
		"f.yaml", []byte("named:\n  one:\n    enabled: true\n  two:\n    enabled: \"true\n"), &s)
	if len(problems) == 0 || !strings.HasPrefix(problems[0].Error(), "f.yaml:5:14: this is not YAML") {
		t.Errorf("got %v", problems)
	}
}

// An entry is decoded again if its text, a file that it names, or a variable may have changed it. All others are the
// same.
func TestCache(t *testing.T) {
	type user struct {
		Name string `yaml:"name"`
	}
	type tenant struct {
		Key       string           `yaml:"key" file:"true"`
		UsersFile string           `yaml:"users_file"`
		Users     map[string]*user `yaml:"users" include:"UsersFile"`
	}
	type document struct {
		Tenants map[string]*tenant `yaml:"tenants"`
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("secret", "s1\n")
	if err := os.Mkdir(filepath.Join(dir, "users"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("users/a.yaml", "users: {alice: {name: Alice}}\n")
	text := "tenants:\n  plain:\n    key: k\n  secret:\n    key_file: secret\n  folder:\n    users_file: users\n  " +
		"named:\n    key: k\n"
	cache := &Cache{}
	load := func(environ ...string) map[string]*tenant {
		t.Helper()
		var got document
		_, problems := Loader{Section: "tenants", Cache: cache, Environ: environ, Prefix: "T_"}.Decode(
			filepath.Join(dir, "f.yaml"), []byte(text), &got)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		cache.Keep()
		return got.Tenants
	}
	before := load()
	check := func(changed string, after map[string]*tenant) {
		t.Helper()
		for name, tenant := range after {
			if same := tenant == before[name]; same == (name == changed) {
				t.Errorf("after a change of %q the tenant %s is the same: %v", changed, name, same)
			}
		}
		before = after
	}
	check("", load())
	write("secret", "s2\n")
	after := load()
	if after["secret"].Key != "s2" {
		t.Errorf("the key is %s", after["secret"].Key)
	}
	check("secret", after)
	write("users/b.yaml", "users: {bob: {name: Bob}}\n")
	after = load()
	if len(after["folder"].Users) != 2 {
		t.Errorf("users are %v", after["folder"].Users)
	}
	check("folder", after)
	text = strings.Replace(text, "  plain:\n", "  plain: # new\n", 1)
	check("plain", load())
	text = "\n# moved\n" + text
	check("", load())
	check("named", load("T_TENANTS_NAMED_KEY=v"))
	if !cache.Used() {
		t.Error("the cache was not used")
	}
}

func TestSourcesChange(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	s := NewSources()
	if _, err := s.ReadFile(name); err == nil {
		t.Error("a missing file was read")
	}
	if _, err := s.ReadDir(dir); err != nil || s.Changed() {
		t.Errorf("changed: %v, %v", s.Changed(), err)
	}
	for _, content := range []string{"one", "two"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if !s.Changed() {
			t.Errorf("%q is no change", content)
		}
		if _, err := s.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadDir(dir); err != nil || s.Changed() {
			t.Errorf("%q is a change after it was read: %v", content, err)
		}
	}
}
