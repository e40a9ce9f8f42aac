package usersfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

const before = `# Users of acme.

users:
  # Sales.
  alice: {password_hash: "$6$old", root: /alice} # until spring
  bob:
    root: /bob # his files
    permissions: [list, read]
    # the end of bob
  # disabled: there is not a password hash
  # A note.
  carol:
    disabled: true
    root: /carol
`

func parse(t *testing.T, text string) *Document {
	t.Helper()
	d, err := Parse([]byte(text))
	must.OK(t, err)
	return d
}

// Comments, order and formatting of unchanged parts are preserved.
func TestDocument(t *testing.T) {
	d := parse(t, before)
	for _, err := range []error{
		d.Set("alice", "$6$new", "password_hash"), d.Set("bob", true, "disabled"), d.Unset("bob", "permissions"),
		d.Unset("carol", "disabled"), d.Unset("carol", "home"),
	} {
		must.OK(t, err)
	}
	d.WithoutReason("carol")
	d.Add("no")
	must.OK(t, d.Set("no", []string{"list", "write"}, "permissions"))
	if got := d.Get("alice", "password_hash"); got != "$6$new" {
		t.Errorf("unexpected hash %q", got)
	}
	text, err := d.Text()
	must.OK(t, err)
	const want = `# Users of acme.

users:
  # Sales.
  alice: {password_hash: $6$new, root: /alice} # until spring
  bob:
    root: /bob # his files
    disabled: true
    # the end of bob
  # A note.
  carol:
    root: /carol
  "no":
    permissions: [list, write]
`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	must.OK(t, d.Remove("alice"))
	must.OK(t, d.Remove("nobody"))
	if d.Has("alice") || !d.Has("bob") || d.Set("alice", "/", "root") == nil {
		t.Error("the user was not removed")
	}
}

// A file may be empty, or contain only comments, no users, flow style, or names in another Unicode form.
func TestParse(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"empty":    {"", "users:\n  alice:\n    root: /a\n"},
		"comment":  {"# mine\n", "# mine\n\nusers:\n  alice:\n    root: /a\n"},
		"no-users": {"users:\n", "users:\n  alice:\n    root: /a\n"},
		"flow":     {"users: {}\n", "users:\n  alice:\n    root: /a\n"},
		"four":     {"users:\n    bob:\n        root: /b\n", "users:\n    bob:\n        root: /b\n    alice:\n        root: /a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := parse(t, tc.text)
			d.Add("alice")
			must.OK(t, d.Set("alice", "/a", "root"))
			if got, err := d.Text(); err != nil || string(got) != tc.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, tc.want)
			}
		})
	}
	if !parse(t, "users: {Jos\u00e9: {}}").Has("Jose\u0301") {
		t.Error("another Unicode form of the name was not found")
	}
	if parse(t, "users: {a: &a {root: /a}, b: *a}").Set("b", "/b", "root") == nil {
		t.Error("changed an alias")
	}
	for _, text := range []string{"- a\n", "users: [a]\n", "users: {a: ]\n"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("accepted %q", text)
		}
	}
}

// Nested settings are added to their section. Sections that become empty are removed, and comments are kept.
func TestDocumentSections(t *testing.T) {
	const before = `users:
  # Sales.
  alice:
    limits: # for the scanner
      sessions: 5 # two devices
      # at night
      transfers: 3
    root: /alice
    # the end of alice
  bob: {files: {deny: ['*.exe']}}
`
	for _, tc := range []struct {
		name   string
		change func(d *Document) error
		want   string
	}{
		{"set", func(d *Document) error { return d.Set("alice", 7, "limits", "sessions") },
			strings.Replace(before, "sessions: 5", "sessions: 7", 1)},
		{"add", func(d *Document) error { return d.Set("alice", []string{"::1"}, "limits", "allow") },
			strings.Replace(before, "transfers: 3", "transfers: 3\n      allow: [\"::1\"]", 1)},
		{"add-section", func(d *Document) error { return d.Set("alice", []string{"read"}, "path_permissions", "/a.b") },
			strings.Replace(before, "    # the end", "    path_permissions:\n      /a.b: [read]\n    # the end", 1)},
		{"add-section-in-flow", func(d *Document) error { return d.Set("bob", 1, "limits", "sessions") },
			strings.Replace(before, "']}}", "']}, limits: {sessions: 1}}", 1)},
		{"unset", func(d *Document) error { return d.Unset("alice", "limits", "sessions") },
			strings.Replace(before, "      sessions: 5 # two devices\n", "", 1)},
		{"unset-last", func(d *Document) error { return d.Unset("bob", "files", "deny") },
			strings.Replace(before, "bob: {files: {deny: ['*.exe']}}", "bob: {}", 1)},
		{"unset-section", func(d *Document) error { return d.Unset("alice", "limits") },
			before[:strings.Index(before, "    limits")] + before[strings.Index(before, "    root"):]},
		{"unset-at-the-end", func(d *Document) error { return d.Unset("alice", "root") },
			strings.Replace(before, "    root: /alice\n", "", 1)},
		{"unset-unknown", func(d *Document) error { return d.Unset("bob", "limits", "sessions") }, before},
		{"remove", func(d *Document) error { return d.Remove("bob") }, strings.Replace(before, "  bob: {files: {deny: ['*.exe']}}\n", "", 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := parse(t, before)
			must.OK(t, tc.change(d))
			text, err := d.Text()
			must.OK(t, err)
			if string(text) != tc.want {
				t.Errorf("got\n%s\nwant\n%s", text, tc.want)
			}
		})
	}
	if got := parse(t, before).Get("alice", "limits", "sessions"); got != "5" {
		t.Errorf("got %q", got)
	}
}

// A change of one user never changes another user who shares settings by a YAML alias, and never removes the anchor of
// the alias.
func TestSharedSettings(t *testing.T) {
	const before = "users:\n  a: &a {root: /a, limits: &l {sessions: 5}, home: &h /in}\n  b: *a\n" +
		"  c: {limits: *l, home: *h}\n  d: {files: &unused {max_size: 1GiB}, root: [x]}\n"
	const shared = "is shared by a YAML anchor"
	for _, tc := range []struct {
		name   string
		change func(d *Document) error
		want   string // expected part of the error
	}{
		{"user", func(d *Document) error { return d.Set("a", "/", "root") }, "users.a " + shared + " (&a): expand its aliases (*a) first"},
		{"alias-of-user", func(d *Document) error { return d.Set("b", "/", "root") }, "users.b is a YAML alias (*a)"},
		{"alias-of-section", func(d *Document) error { return d.Set("c", 1, "limits", "sessions") }, "users.c.limits is a YAML alias (*l)"},
		{"unset-in-alias", func(d *Document) error { return d.Unset("c", "limits", "sessions") }, "users.c.limits is a YAML alias (*l)"},
		{"remove", func(d *Document) error { return d.Remove("a") }, "users.a " + shared},
		{"replace-aliases", func(d *Document) error {
			return errors.Join(d.Set("c", 3, "limits"), d.Set("c", "/", "home"), d.Remove("b"))
		}, ""},
		{"section", func(d *Document) error {
			return errors.Join(d.Remove("b"), d.Set("a", 1, "limits", "sessions"))
		}, "users.a.limits " + shared},
		{"whole-section", func(d *Document) error { return errors.Join(d.Remove("b"), d.Unset("a", "limits")) }, "users.a.limits " + shared},
		{"value", func(d *Document) error { return errors.Join(d.Remove("b"), d.Set("a", "/", "home")) }, "users.a.home " + shared},
		{"anchor-without-alias", func(d *Document) error { return d.Set("d", "2GiB", "files", "max_size") }, ""},
		{"not-a-section", func(d *Document) error { return d.Set("d", "x", "root", "y") }, "users.d.root must be a mapping"},
		{"not-utf-8", func(d *Document) error { return d.Set("d", "\xff", "root") }, "users.d.root: \"\\xff\" is not UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := parse(t, before)
			err := tc.change(d)
			if tc.want == "" {
				must.OK(t, err)
				text, err := d.Text()
				must.OK(t, err)
				parse(t, string(text))
			} else if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// Hashes are replaced if they are still the same, and nothing else changes.
func TestWriteHashes(t *testing.T) {
	const before = `# ours
users:

  # Sales.
  alice: {password_hash: $6$old,   root: /alice} # until spring
  bob:
    password_hash:   "$6$bob"   # of the old server: $6$bob

    expires: 2027-01-31
  carol: &c {password_hash: $6$carol}
  dave: *c
  erin: {password_hash: &hash $6$erin}
  frank: {password_hash: *hash}
  gina: {password_hash_file: gina.hash}


  é: {home: /é, password_hash: '$6$é'}
  "henry": {"password_hash": &unused "$6$same"}
  ida: {root: /$6$same, password_hash: $6$same}
  kim: {password_hash: "\x24\x36$kim"}
  lea:
    password_hash: >-
      $6$lea
`
	for _, tc := range []struct {
		name    string
		changes []Rehash
		users   string
		err     string // part of the error
		oldnew  []string
	}{
		{"two", []Rehash{{"alice", "$6$old", "$argon2id$v=19$m=8,t=1$x"}, {"bob", "$6$bob", "$new"}}, "alice bob", "",
			[]string{"$6$old", `"$argon2id$v=19$m=8,t=1$x"`, `"$6$bob"`, `"$new"`}},
		{"changed-since", []Rehash{{"alice", "$6$older", "$new"}, {"bob", "$6$bob", "$new"}}, "bob", "", []string{`"$6$bob"`, `"$new"`}},
		{"none", []Rehash{{"alice", "$6$older", "$new"}, {"nobody", "$6$x", "$new"}, {"gina", "$6$x", "$new"}}, "", "", nil},
		{"shared-settings", []Rehash{{"carol", "$6$carol", "$new"}, {"alice", "$6$old", "$new"}}, "alice",
			"users.carol is shared by a YAML anchor", []string{"$6$old", `"$new"`}},
		{"shared-hash", []Rehash{{"erin", "$6$erin", "$new"}, {"frank", "$6$erin", "$new"}}, "",
			"users.erin.password_hash is shared by a YAML anchor", nil},
		{"same-hash", []Rehash{{"henry", "$6$same", "$new"}, {"ida", "$6$same", "$newer"}}, "henry ida", "",
			[]string{`"$6$same"`, `"$new"`, "h: $6$same", `h: "$newer"`}},
		{"after-other-characters", []Rehash{{"e\u0301", "$6$é", "$new"}}, "e\u0301", "", []string{`'$6$é'`, `"$new"`}},
		{"escaped", []Rehash{{"kim", "$6$kim", "$new"}}, "", "users.kim.password_hash cannot be replaced: write it in quotes", nil},
		{"on-another-line", []Rehash{{"lea", "$6$lea", "$new"}, {"alice", "$6$old", "$new"}}, "alice",
			"users.lea.password_hash cannot be replaced", []string{"$6$old", `"$new"`}},
	} {
		for _, lineEnd := range []string{"\n", "\r\n"} {
			t.Run(tc.name+fmt.Sprintf("/%q", lineEnd), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "users.yaml")
				before := strings.ReplaceAll(before, "\n", lineEnd)
				must.WriteFile(t, file, before)
				users, err := writeHashes(file, tc.changes)
				if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) ||
					strings.Join(users, " ") != tc.users {
					t.Errorf("%s: %v", users, err)
				}
				want := strings.NewReplacer(tc.oldnew...).Replace(before)
				if got := must.ReadFile(t, file); got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// The server writes hashes only to regular files of its own.
func TestMayRehash(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "..2026_11_29_10_00_00.1234")
	must.OK(t, os.Mkdir(data, 0o700))
	for _, name := range []string{"..2026_11_29_10_00_00.1234/secret.yaml", "users.yaml", "..yaml"} {
		must.WriteFile(t, filepath.Join(dir, name), "users: {}\n")
	}
	for name, target := range map[string]string{
		"..data": filepath.Base(data), "secret.yaml": "..data/secret.yaml", "link.yaml": "users.yaml",
	} {
		must.OK(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	t.Chdir(data)
	for name, want := range map[string]string{
		filepath.Join(dir, "users.yaml"):         "",
		filepath.Join(dir, "link.yaml"):          "symbolic link",
		filepath.Join(dir, "secret.yaml"):        "symbolic link",
		filepath.Join(dir, "..data/secret.yaml"): "symbolic link",
		filepath.Join(dir, "missing.yaml"):       "no such file",
		"../users.yaml":                          "",
		"secret.yaml":                            "symbolic link",
		dir:                                      "is not a file",
	} {
		if err := MayRehash(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// A change that another program makes without the lock, such as an editor, is not lost.
func TestChangeBesidesAnEditor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.yaml")
	must.WriteFile(t, file, "users: {alice: {root: /a}}\n")
	editor := func(text string, times int) func(string, []byte) error {
		return func(string, []byte) error {
			if times--; times >= 0 {
				must.WriteFile(t, file, strings.Repeat(text, times+1))
			}
			return nil
		}
	}
	add := func(d *Document) error { d.Add("bob"); return nil }
	must.OK(t, Edit(file, add, editor("# edited\nusers: {}\n", 1)))
	if got, want := must.ReadFile(t, file), "# edited\nusers:\n  bob: {}\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	err := Edit(file, func(*Document) error { return nil }, editor("# again\n", 100))
	if !errors.Is(err, errChanged) || !strings.Contains(must.ReadFile(t, file), "# again") {
		t.Errorf("%v, and the file is\n%s", err, must.ReadFile(t, file))
	}
}

// The file keeps its mode and symbolic links. A rejected or tried change does not modify it, and no parallel change
// is lost.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "users.yaml")
	must.OK(t, os.WriteFile(file, []byte(before), 0o640))
	must.OK(t, os.Chmod(file, 0o640))
	must.OK(t, os.Symlink("real.yaml", link))
	add := func(name string) func(*Document) error {
		return func(d *Document) error { d.Add(name); return nil }
	}
	refused := errors.New("refused")
	err := Edit(link, add("mallory"), func(name string, text []byte) error {
		if name != link || !strings.Contains(string(text), "mallory") {
			t.Errorf("asked about %s with\n%s", name, text)
		}
		return refused
	})
	if text := must.ReadFile(t, file); !errors.Is(err, refused) || text != before {
		t.Errorf("got error %v and the file\n%s", err, text)
	}
	must.OK(t, DryRun(link, add("mallory"), func(string, []byte) error { return nil }))
	if text := must.ReadFile(t, file); text != before {
		t.Errorf("file after the dry run:\n%s", text)
	}
	const parallel = 20
	var group sync.WaitGroup
	for i := range parallel {
		group.Go(func() {
			if err := Edit(link, add(fmt.Sprint("user", i)), func(string, []byte) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	text := must.ReadFile(t, file)
	for i := range parallel {
		if !parse(t, text).Has(fmt.Sprint("user", i)) {
			t.Errorf("user%d was lost", i)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	if to, err := os.Readlink(link); err != nil || to != "real.yaml" {
		t.Errorf("got link to %q, %v", to, err)
	}
	fresh := filepath.Join(dir, "new.yaml")
	must.OK(t, Edit(fresh, add("alice"), func(string, []byte) error { return nil }))
	if info, err := os.Stat(fresh); err != nil || info.Mode().Perm() != newMode {
		t.Errorf("new file: got mode %v, %v", info.Mode(), err)
	}
	must.OK(t, os.Chmod(dir, 0o750|fs.ModeSetgid))
	shared := filepath.Join(dir, "shared.yaml")
	must.OK(t, Edit(shared, add("alice"), func(string, []byte) error { return nil }))
	if info, err := os.Stat(shared); err != nil || info.Mode().Perm() != newGroupMode {
		t.Errorf("new file in a folder of a group: got mode %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("unexpected files in the folder: %v, %v", entries, err)
	}
}

// A file whose lines the parser counts in another way is refused, not damaged.
func TestWriteHashesAfterOtherLineEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.yaml")
	for _, before := range []string{"# a\r# b\rusers:\r  alice: {password_hash: $6$old}\n", "# a\u2028users: {alice: {password_hash: $6$old}}\n"} {
		must.WriteFile(t, file, before)
		users, err := writeHashes(file, []Rehash{{"alice", "$6$old", "$new"}})
		if got := must.ReadFile(t, file); err == nil && len(users) > 0 || got != before {
			t.Errorf("%s, %v: %q", users, err, got)
		}
	}
}
