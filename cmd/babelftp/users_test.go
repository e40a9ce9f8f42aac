package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The commands add, change and remove users, and print what they have done or how to fix an error. They never
// leave an invalid configuration, and report errors before they ask for a password.
func TestUsersCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "babelftp.yaml")
	write := func(name, text string) {
		t.Helper()
		must.WriteFile(t, filepath.Join(dir, name), text)
	}
	write("babelftp.yaml", `
listen: ":2121"
passive: {ports: 30000-30099}
admin_socket: nowhere.sock
s3: {region: eu-west-1}
tenants:
  acme: {bucket: acme-data, users_file: users.yaml}
  plain: {bucket: plain-data, users: {paul: {disabled: true}}}
  folder: {bucket: folder-data, users_file: folder}
  hashed: {bucket: hashed-data, users_file: hashed.yaml}
`)
	must.OK(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	write("folder/a.yaml", "users: {dora: {disabled: true}}\n")
	write("folder/b.yml", "# B\nusers: {eric: {disabled: true}}\n")
	write("hashed.yaml", "users: {gwen: {password_hash_file: gwen.hash}}\n")
	write("gwen.hash", "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e\n")
	write("password", "from a file\n")
	for _, step := range []struct {
		name, stdin, args string
		code              int
		out, err          string // parts of the output
	}{
		{"first", "secret\n", "add alice@acme --root /alice --permissions list,read", 0, "alice@acme is added to ", ""},
		{"again", "", "add alice@acme", 1, "", "user alice@acme already exists in "},
		{"wrong", "", "add bob@acme --root bob", 1, "", "not changed because the change"},
		{"wrong-place", "", "add bob@acme --root bob", 1, "", `users.bob.root: "bob" is not absolute`},
		{"wrong-permission", "", "add bob@acme --permissions fly", 1, "", "fly"},
		{"password-elsewhere", "", "passwd gwen@hashed", 1, "", "is in gwen.hash (password_hash_file)"},
		{"no-password", "", "add bob@acme", 1, "", "the password is empty"},
		{"disabled", "", "add bob@acme --root /bob --disabled --expires 2020-01-31", 0, "bob@acme is added", ""},
		{"enable-without", "", "enable bob@acme --expires never", 1, "", "password_hash: is missing"},
		{"passwd", "", "passwd bob@acme --password-file " + filepath.Join(dir, "password"), 0,
			"is still disabled: babelftp users enable bob@acme", ""},
		{"expired", "", "enable bob@acme", 1, "", "bob@acme expired on 2020-01-31: set a later date with --expires"},
		{"enable", "", "enable bob@acme --expires never", 0, "bob@acme may log in", ""},
		{"disable", "", "disable alice@acme", 0, "alice@acme is disabled", ""},
		{"unknown", "", "disable nobody@acme", 1, "", "user nobody@acme not found in"},
		{"no-tenant", "", "disable alice", 2, "", "want USER@TENANT, with one of acme, folder, hashed, plain"},
		{"in-the-configuration", "", "enable paul@plain", 1, "", "tenant plain has no users_file"},
		{"no-folder", "", "add fred@acme --disabled --file other.yaml", 1, "", "is not a directory"},
		{"no-name", "", "add @acme --disabled", 1, "", `"" is not a valid user name`},
		{"folder", "", "add fred@folder --disabled", 1, "", "is a directory with 2 files: choose one with --file"},
		{"folder-file", "", "add fred@folder --disabled --file b.yml", 0, "fred@folder is added to ", ""},
		{"folder-other-file", "", "add gina@folder --disabled --file c.txt", 1, "", "invalid --file c.txt"},
		{"folder-wrong", "", "add gina@folder --root gina --disabled --file c.yaml", 1, "",
			`users.gina.root: "gina" is not absolute`},
		{"folder-new-file", "", "add gina@folder --disabled --file c.yaml", 0, "gina@folder is added to ", ""},
		{"folder-found", "", "remove eric@folder", 0, "eric@folder is removed from ", ""},
		{"list", "", "list acme", 0, "alice@acme  disabled  -        /alice  users_file  -\n" +
			"bob@acme    enabled   -        /bob    users_file  -\n", ""},
		{"list-configuration", "", "list plain", 0, "paul@plain  disabled  -        /     configuration  -\n", ""},
		{"remove", "", "remove alice@acme", 0, "alice@acme is removed", ""},
		{"remove-last", "", "remove bob@acme", 1, "", "is empty: add at least one user"},
		{"json", "", "list --json", 0, `"user": "bob",`, ""},
	} {
		args := append([]string{"users"}, strings.Fields(step.args)...)
		code, out, err := output(t, step.stdin, append(args, "--config", file)...)
		if code != step.code || !strings.Contains(out, step.out) || !strings.Contains(err, step.err) {
			t.Errorf("%s: %d\n%s%s\nwant %d, %q and %q", step.name, code, out, err, step.code, step.out, step.err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "folder", "b.yml"))
	if want := "# B\nusers:\n  fred:\n    disabled: true\n"; err != nil || string(text) != want {
		t.Errorf("b.yml is %q, %v; want %q", text, err, want)
	}
}

// If the configuration is already invalid, the commands report its problems and change nothing.
func TestUsersOfWrongConfiguration(t *testing.T) {
	dir := t.TempDir()
	file, users := filepath.Join(dir, "babelftp.yaml"), filepath.Join(dir, "users.yaml")
	const before = "users:\n  zoe: {disabled: true, root: zoe}\n"
	must.WriteFile(t, users, before)
	must.WriteFile(t, file, "listen: ftp\ntenants: {acme: {bucket: acme-data, users_file: users.yaml}}\n")
	code, out, stderr := output(t, "", "users", "add", "bob@acme", "--root", "bob", "--disabled", "--config", file)
	want := "babelftp: " + users + " not changed because the configuration is already invalid; fix it first:\n" + file + ":1:9: listen: "
	if code != 1 || out != "" || !strings.HasPrefix(stderr, want) ||
		!strings.Contains(stderr, users+`:2:31: tenants.acme.users.zoe.root: "zoe" is not absolute`) || strings.Contains(stderr, "bob.root") {
		t.Errorf("%d\n%s%s\nwant %s", code, out, stderr, want)
	}
	if text := must.ReadFile(t, users); text != before {
		t.Errorf("the file has %q", text)
	}
}

// The errors about users in the shared state say what is missing, before anything is sent to S3.
func TestUsersInStateErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "babelftp.yaml")
	must.WriteFile(t, filepath.Join(dir, "users.yaml"), "users: {zoe: {disabled: true}}\n")
	must.WriteFile(t, file, `
listen: ":2121"
passive: {ports: 30000-30099}
s3: {region: eu-west-1, endpoint: "http://127.0.0.1:1", access_key_id: a, secret_access_key: b}
state: {bucket: shared, keys: `+strings.Repeat("A", 43)+`=, folder: `+dir+`}
tenants:
  acme: {bucket: acme-data, users_store: state}
  file: {bucket: file-data, users_file: users.yaml}
`)
	for _, step := range []struct {
		args string
		code int
		err  string
	}{
		{"move acme", 2, "expected --to state or --to file"},
		{"move acme --to elsewhere", 2, "expected --to state or --to file"},
		{"move acme --to state --file x.yaml", 2, "--file requires --to file"},
		{"move nobody --to state", 1, `unknown tenant "nobody": want one of acme, file`},
		{"move acme --to file", 1, "tenant acme has no users_file: add `users_file: acme-users.yaml` to " + file},
		{"move file --to state", 1, "tenant file has no users_store: add `users_store: state` to " + file},
		{"add bob@acme --disabled", 1, "state s3://shared/.babelftp/state/: "},
		{"list acme", 1, "cannot read the users in the shared state: "},
	} {
		code, out, err := output(t, "", append(append([]string{"users"}, strings.Fields(step.args)...), "--config", file)...)
		if code != step.code || out != "" || !strings.Contains(err, step.err) {
			t.Errorf("%s: %d\n%s%s\nwant %d and %q", step.args, code, out, err, step.code, step.err)
		}
	}
	if code, out, err := output(t, "", "users", "list", "file", "--config", file); code != 0 || !strings.Contains(out, "zoe@file") {
		t.Errorf("list of a tenant with a file: %d\n%s%s", code, out, err)
	}
	if code, out, err := output(t, "", "check", "--config", file); code != 0 || !strings.Contains(out, "tenant acme: users in the shared state") {
		t.Errorf("check: %d\n%s%s", code, out, err)
	}
}
