package acceptance_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A user of an old FTP server logs in with the old password, which is stored as a new hash. After that the old
// server is no longer needed.
func TestUsersMoveFromOldServers(t *testing.T) {
	t.Parallel()
	for _, program := range servicetest.OldServers() {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			old := servicetest.StartOldServer(t, program)
			dir := t.TempDir()
			users, audit := filepath.Join(dir, "users.yaml"), filepath.Join(dir, "audit.log")
			must.WriteFile(t, users, "# partners\nusers: {}\n")
			s := newReloadSite(t, "    users_file: "+users, "    ca_file: "+old.CAFile, fmt.Sprintf(
				"    auth: {ftp: {address: %q}, user: {root: \"/partners/{user}\", permissions: [list, write], quota: 1GiB}}",
				old.Address), "audit: {file: "+audit+"}")
			babelftp := func(args ...string) string {
				return launch(t, binary(t), append(args, "--config", s.file)...).succeed()
			}
			if got := babelftp("check", "--probe"); !strings.Contains(got, "\ntenant acme: auth: ok\n") {
				t.Errorf("unexpected output of check --probe: %q", got)
			}
			login := func(user, password string, code int) *ftptest.Client {
				t.Helper()
				c := ftptest.Dial(t, s.address)
				c.Command(331, "USER "+user+"@acme")
				c.Command(code, "PASS "+password)
				return c
			}
			login(servicetest.OldUser, "wrong", 530)
			login("anonymous", "a@example.com", 530)
			if text := must.ReadFile(t, users); text != "# partners\nusers: {}\n" {
				t.Errorf("a wrong password changed the file: %q", text)
			}
			s.after(reloaded, func() {
				login(servicetest.OldUser, servicetest.OldPassword, 230).Store("/file", "from before")
			})
			old.Stop()
			login(servicetest.OldUser, servicetest.OldPassword, 230).Store("/file", "from then on")
			login(servicetest.OldUser, "wrong", 530)
			login("carol", servicetest.OldPassword, 421) // only the old server could know this user

			text := must.ReadFile(t, users)
			for _, want := range []string{"# partners\n", "# moved from " + old.Address + " at ", "bob:\n", "$argon2id$",
				"root: /partners/bob\n", "permissions: [list, write]\n", "quota: 1GiB\n"} {
				if !strings.Contains(text, want) {
					t.Errorf("the file lacks %q:\n%s", want, text)
				}
			}
			if strings.Contains(text+s.server.stderr.String(), servicetest.OldPassword) {
				t.Error("the password is in the file or in the log")
			}
			var listed []struct{ User, Source string }
			must.OK(t, json.Unmarshal([]byte(babelftp("users", "list", "acme", "--json")), &listed))
			if got := fmt.Sprint(listed); got != fmt.Sprintf("[{alice configuration} {bob %s}]", old.Address) {
				t.Errorf("unexpected list %s", got)
			}
			var moved int
			lines := must.ReadFile(t, audit)
			for line := range strings.Lines(lines) {
				if strings.Contains(line, `"moved_from":"`+old.Address+`"`) && strings.Contains(line, `"user":"bob"`) {
					moved++
				}
			}
			if moved != 1 {
				t.Errorf("got %d moved logins in the audit log", moved)
			}
			babelftp("users", "disable", "bob@acme")
			babelftp("users", "list")
		})
	}
}

// A users_file that the server cannot write, or that is a directory, is rejected with the reason.
func TestUsersFileForMovesIsReadOnly(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	s := &site{storage: storage, buckets: map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}}
	folder := t.TempDir()
	must.WriteFile(t, filepath.Join(folder, "users.yaml"), "users: {}\n")
	file := s.configure(t, "    users_file: "+folder, `    auth: {ftp: {address: "127.0.0.1:1"}, user: {root: "/{user}"}}`)
	for _, command := range []string{"check", "serve"} {
		p := launch(t, binary(t), command, "--config", file)
		if p.wait() == 0 || !strings.Contains(p.stderr.String(), folder+" is not a file: name one") {
			t.Errorf("%s: %s", command, p.stderr)
		}
	}
	text := must.ReadFile(t, file)
	text = strings.Replace(text, "users_file: "+folder, "users_file: "+filepath.Join(folder, "users.yaml"), 1)
	must.WriteFile(t, file, text)
	launch(t, binary(t), "check", "--config", file).succeed()
	for _, command := range []string{"check", "serve"} { // as with a Secret of Kubernetes
		p := launch(t, "unshare", "--map-root-user", "--mount", "sh", "-c",
			`mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" "$3" --config "$4"`, "sh", folder, binary(t),
			command, file)
		if p.wait() == 0 || !strings.Contains(p.stderr.String(), "is not writable: "+
			filepath.Join(folder, "users.yaml")+": read-only file system: use a file that the server can write on every replica") {
			t.Errorf("%s: %s", command, p.stderr)
		}
	}
}
