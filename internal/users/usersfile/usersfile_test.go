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
		d.Set("alice", "password_hash", "$6$new"), d.Set("bob", "disabled", true), d.Unset("bob", "permissions"),
		d.Unset("carol", "disabled"), d.Unset("carol", "home"),
	} {
		must.OK(t, err)
	}
	d.WithoutReason("carol")
	d.Add("no")
	must.OK(t, d.Set("no", "permissions", []string{"list", "write"}))
	if got := d.Get("alice", "password_hash"); got != "$6$new" {
		t.Errorf("the hash is %q", got)
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
	d.Remove("alice")
	d.Remove("nobody")
	if d.Has("alice") || !d.Has("bob") || d.Set("alice", "root", "/") == nil {
		t.Error("the user is not removed")
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
			must.OK(t, d.Set("alice", "root", "/a"))
			if got, err := d.Text(); err != nil || string(got) != tc.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, tc.want)
			}
		})
	}
	if !parse(t, "users: {Jos\u00e9: {}}").Has("Jose\u0301") {
		t.Error("the other Unicode form of a name is not found")
	}
	if parse(t, "users: {a: &a {root: /a}, b: *a}").Set("b", "root", "/b") == nil {
		t.Error("an alias is changed")
	}
	for _, text := range []string{"- a\n", "users: [a]\n", "users: {a: ]\n"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
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
		t.Errorf("%v, and the file is\n%s", err, text)
	}
	must.OK(t, DryRun(link, add("mallory"), func(string, []byte) error { return nil }))
	if text := must.ReadFile(t, file); text != before {
		t.Errorf("after a try the file is\n%s", text)
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
			t.Errorf("user%d is lost", i)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if to, err := os.Readlink(link); err != nil || to != "real.yaml" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	fresh := filepath.Join(dir, "new.yaml")
	must.OK(t, Edit(fresh, add("alice"), func(string, []byte) error { return nil }))
	if info, err := os.Stat(fresh); err != nil || info.Mode().Perm() != newMode {
		t.Errorf("the mode of a new file is %v, %v", info.Mode(), err)
	}
	must.OK(t, os.Chmod(dir, 0o750|fs.ModeSetgid))
	shared := filepath.Join(dir, "shared.yaml")
	must.OK(t, Edit(shared, add("alice"), func(string, []byte) error { return nil }))
	if info, err := os.Stat(shared); err != nil || info.Mode().Perm() != newGroupMode {
		t.Errorf("the mode of a new file in a folder of a group is %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}
