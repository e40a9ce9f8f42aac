package account

import (
	"context"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// keyFor returns the name under which a user with the root /in stores a file in a mount.
func keyFor(user, at string, origin driver.Origin, name string, rules ...config.ObjectRule) string {
	tenant := &Tenant{Name: "acme", Tenant: &config.Tenant{}, rules: newObjectRules(rules)}
	u := &User{User: &config.User{Root: "/in"}, Name: user, Tenant: tenant}
	keys := u.keysIn(mount{at: at, prefix: "inbox/in/"})
	if keys == nil {
		return ""
	}
	return keys(withClient(context.Background(), Client{
		Session: "s1", Address: netip.MustParseAddr("2001:db8::1"), Language: language.French,
	}), name, origin)
}

func keyRule(path, key string) config.ObjectRule {
	return config.ObjectRule{Path: path, Set: config.ObjectAttributes{Key: key}}
}

// random matches what {random} becomes.
const random = "[a-z2-7]{16}"

func TestKeys(t *testing.T) {
	long := strings.Repeat("ü", 125) + ".json" // 255 bytes
	date := regexp.QuoteMeta(time.Now().UTC().Format(time.DateOnly))
	for name, tc := range map[string]struct{ user, file, key, want string }{
		"partitions":       {"alice", "/a.csv", "dt={date}/{user}/{stem}-{time}{ext}", "dt=" + date + "/alice/a-[0-9]{6}-R.csv"},
		"random":           {"alice", "/a.csv", "{random}/{name}", "R/a.csv"},
		"name":             {"alice", "/a.tar.gz", "x/{name}", "x/a.tar-R.gz"},
		"literal-ext":      {"alice", "/a.csv", "x/{stem}.parquet", "x/a-R.parquet"},
		"no-ext":           {"alice", "/a", "{tenant}/{user}", "acme/alice-R"},
		"directories":      {"alice", "/b/c/a.csv", "{name}", "a-R.csv"},
		"no-value":         {"alice", "/a", "{ext}/{name}", "_/a-R"},
		"hidden":           {"alice", "/.profile", "{stem}/{name}", "_/-R.profile"},
		"address":          {"alice", "/a", "{address}/{language}-{session}", "2001:db8::1/fr-s1-R"},
		"user-leaves":      {"../../x", "/a.csv", "{user}/{name}", "\\.\\._\\.\\._x/a-R.csv"},
		"user-is-parent":   {"..", "/a.csv", "{user}/{name}", "_\\.\\./a-R.csv"},
		"user-is-dot":      {".", "/a.csv", "{user}/{name}", "_\\./a-R.csv"},
		"user-is-reserved": {".babelftp", "/a.csv", "{user}/{name}", "_\\.babelftp/a-R.csv"},
		"built-reserved":   {"babelftp", "/a.csv", ".{user}/{name}", "_\\.babelftp/a-R.csv"},
		"built-parent":     {".", "/a.csv", ".{user}/{name}", "_\\.\\./a-R.csv"},
		"slash":            {"a/b", "/a.csv", "{user}/{name}", "a_b/a-R.csv"},
		"controls":         {"a\n\x00\\b", "/\x7f\u0085.csv", "{user}/{name}", "a___b/__-R.csv"},
		"placeholder":      {"{random}", "/{user}.csv", "{user}/{name}", "{random}/{user}-R.csv"},
		"emoji":            {"alice", "/👩‍👩‍👧.csv", "{name}", "👩‍👩‍👧-R.csv"},
		"right-to-left":    {"alice", "/تقرير.csv", "{user}-{name}", "alice-تقرير-R.csv"},
		"long":             {"alice", "/" + long, "x-{name}", "x-ü{115}-R.json"},
		"long-twice":       {"alice", "/" + long, "{stem}={stem}{ext}", "ü{58}=ü{58}-R.json"},
	} {
		t.Run(name, func(t *testing.T) {
			got := keyFor(tc.user, "/", driver.Uploaded, tc.file, keyRule("/in", tc.key))
			want := "^/" + strings.ReplaceAll(tc.want, "R", random) + "$"
			if !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("got %q, want %s", got, want)
			}
			for segment := range strings.SplitSeq(got, "/") {
				if len(segment) > maxKeySegment {
					t.Errorf("a segment has %d bytes", len(segment))
				}
			}
		})
	}
	segments := strings.Repeat("{stem}/", 8) + "{name}"
	got := keyFor("alice", "/", driver.Uploaded, "/"+long, keyRule("/in", segments))
	if len("inbox/in")+len(got) > maxKeyBytes || len(got) < maxKeyBytes-60 || !strings.HasSuffix(got, ".json") {
		t.Errorf("got %q with %d bytes", got, len(got))
	}
}

// The key is below the directory that the pattern matches, within the mount.
func TestPlacesOfKeys(t *testing.T) {
	kept, bobs := keyRule("/in", "{name}"), keyRule("/in", "{name}")
	kept.Keep, bobs.User = true, "bob"
	for name, tc := range map[string]struct {
		at     string
		origin driver.Origin
		file   string
		rules  []config.ObjectRule
		want   string
	}{
		"none":       {"/", driver.Uploaded, "/a", nil, ""},
		"all":        {"/", driver.Uploaded, "/b/a", []config.ObjectRule{keyRule("", "k/{name}")}, "/k/a-R"},
		"root":       {"/", driver.Uploaded, "/b/a", []config.ObjectRule{keyRule("/in", "k/{name}")}, "/k/a-R"},
		"below":      {"/", driver.Uploaded, "/b/c/a", []config.ObjectRule{keyRule("/in/b", "k/{name}")}, "/b/k/a-R"},
		"pattern":    {"/", driver.Uploaded, "/b/c/d/a", []config.ObjectRule{keyRule("/*/b/*", "{name}")}, "/b/c/a-R"},
		"mount":      {"/b", driver.Uploaded, "/c/a", []config.ObjectRule{keyRule("/in", "{name}")}, "/a-R"},
		"in-mount":   {"/b", driver.Uploaded, "/c/d/a", []config.ObjectRule{keyRule("/in/b/c", "{name}")}, "/c/a-R"},
		"itself":     {"/", driver.Uploaded, "/b", []config.ObjectRule{keyRule("/in/b", "{name}")}, ""},
		"elsewhere":  {"/", driver.Uploaded, "/a", []config.ObjectRule{keyRule("/other", "{name}")}, ""},
		"other-user": {"/", driver.Uploaded, "/a", []config.ObjectRule{bobs}, ""},
		"copied":     {"/", driver.Copied, "/a", []config.ObjectRule{keyRule("/in", "{name}")}, "/a-R"},
		"kept":       {"/", driver.Copied, "/a", []config.ObjectRule{kept}, ""},
		"uploaded":   {"/", driver.Uploaded, "/a", []config.ObjectRule{kept}, "/a-R"},
		"first":      {"/", driver.Uploaded, "/a", []config.ObjectRule{{}, bobs, keyRule("", "1"), keyRule("", "2")}, "/1-R"},
		"decomposed": {"/", driver.Uploaded, "/u\u0308/c/a", []config.ObjectRule{keyRule("/in/ü", "{name}")}, "/u\u0308/a-R"},
	} {
		t.Run(name, func(t *testing.T) {
			got := keyFor("alice", tc.at, tc.origin, tc.file, tc.rules...)
			want := "^" + strings.ReplaceAll(tc.want, "R", random) + "$"
			if !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("got %q, want %s", got, want)
			}
		})
	}
}

// No name and no user make a key outside of the directory, or one that is too long or reserved.
func FuzzKeys(f *testing.F) {
	f.Add("../../x", "a/b", "dt={date}/{user}/{stem}-{time}{ext}")
	f.Add(".babelftp", "..", "{user}/{name}")
	f.Add("", strings.Repeat("é", 400), "{stem}/{stem}/{stem}/{ext}/{name}")
	f.Fuzz(func(t *testing.T, user, name, key string) {
		name = path.Clean("/b/" + name)
		if !strings.HasPrefix(name, "/b/") || !utf8.ValidString(name+user) || !templateOK(key) {
			return // such a name or key does not get here
		}
		got := keyFor(user, "/", driver.Uploaded, name, keyRule("/in/b", key))
		if !strings.HasPrefix(got, "/b/") || path.Clean(got) != got || !utf8.ValidString(got) || len(got) > maxKeyBytes ||
			strings.Contains(got+"/", "/"+driver.Reserved+"/") || got == keyFor(user, "/", driver.Uploaded, name, keyRule("/in/b", key)) {
			t.Errorf("%q by %q with %q is stored as %q", name, user, key, got)
		}
	})
}

// templateOK reports whether a configuration may have the key.
func templateOK(key string) bool {
	if key == "" || len(key) > 128 || strings.Contains(key, "..") || strings.Contains(key, driver.Reserved) {
		return false
	}
	rest := regexp.MustCompile(`\{[a-z]*\}`).ReplaceAllString(key, "x")
	return path.Clean("/"+rest) == "/"+rest && utf8.ValidString(key)
}

// A user whose files get keys by a rule can neither list nor read there, whatever the permissions are.
func TestDropBoxesByRule(t *testing.T) {
	rules := []config.ObjectRule{keyRule("/in/drop", "{name}"), keyRule("/in/*/raw", "{name}"), {}}
	rules[2] = keyRule("", "{name}")
	rules[2].User = "scanner-*"
	for name, tc := range map[string]struct {
		user       string
		root       string
		at         string
		list, read bool
	}{
		"elsewhere":    {"alice", "", "/in/a", true, true},
		"above":        {"alice", "", "/in", true, true},
		"itself":       {"alice", "", "/in/drop", false, false},
		"below":        {"alice", "", "/in/drop/a/b", false, false},
		"pattern":      {"alice", "", "/in/b/raw/x", false, false},
		"root":         {"alice", "/in", "/drop", false, false},
		"root-in-box":  {"alice", "/in/drop/alice", "/", false, false},
		"by-user":      {"scanner-1", "", "/any", false, false},
		"root-outside": {"alice", "/other", "/in/drop", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := view.Policy{dropBoxes(newObjectRules(rules), tc.user).Below(tc.root)}.At(tc.at)
			if got.List != tc.list || got.Read != tc.read || !got.Write || !got.Delete || !got.Rename || !got.Mkdir {
				t.Errorf("the rights are %+v", got)
			}
		})
	}
}

func TestCheckDropBoxes(t *testing.T) {
	write := []config.Permission{config.Write}
	for name, tc := range map[string]struct {
		rule  config.ObjectRule
		user  config.User
		folds map[string]*config.Folder
		bad   string
	}{
		"write-only":     {keyRule("/in", "{name}"), config.User{Permissions: write}, nil, ""},
		"by-path":        {keyRule("/in", "{name}"), config.User{PathPermissions: map[string][]config.Permission{"/in": write}}, nil, ""},
		"same-pattern":   {keyRule("/*/in", "{name}"), config.User{PathPermissions: map[string][]config.Permission{"/*/in": write}}, nil, ""},
		"other-root":     {keyRule("/in", "{name}"), config.User{Root: "/out"}, nil, ""},
		"folder":         {keyRule("/in", "{name}"), config.User{}, map[string]*config.Folder{"/in": {Permissions: write}}, ""},
		"all":            {keyRule("/in", "{name}"), config.User{}, nil, "/in"},
		"read":           {keyRule("/in", "{name}"), config.User{Permissions: []config.Permission{config.Read}}, nil, "/in"},
		"list":           {keyRule("/in", "{name}"), config.User{Permissions: []config.Permission{config.List}}, nil, "/in"},
		"root":           {keyRule("/in", "{name}"), config.User{Root: "/in/alice"}, nil, "/"},
		"everywhere":     {keyRule("", "{name}"), config.User{Root: "/in/alice"}, nil, "/"},
		"below-the-rule": {keyRule("/in", "{name}"), config.User{Permissions: write, PathPermissions: map[string][]config.Permission{"/in/a": {config.List}}}, nil, "/in"},
		"part-of-it":     {keyRule("/a/in", "{name}"), config.User{Root: "/a"}, nil, "/in"},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &config.Tenant{Users: map[string]*config.User{"alice": &tc.user}, Folders: tc.folds}
			tenant.Objects.Rules = []config.ObjectRule{tc.rule}
			cfg := &config.Config{Tenants: map[string]*config.Tenant{"acme": tenant}}
			err := CheckDropBoxes(cfg)
			if (err == nil) != (tc.bad == "") || err != nil &&
				!strings.Contains(err.Error(), "tenants.acme.users.alice: may list or read files in "+tc.bad+", ") {
				t.Errorf("got %v, want an error about %q", err, tc.bad)
			}
			tenant.Objects.Rules[0].User = "bob"
			if err := CheckDropBoxes(cfg); err != nil {
				t.Errorf("for another user: %v", err)
			}
		})
	}
}
