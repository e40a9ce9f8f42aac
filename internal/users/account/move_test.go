package account

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// A user of the old server is stored once. If the user cannot be stored, the login succeeds and the log has the
// reason.
func TestMove(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.yaml")
	write := func(text string) {
		t.Helper()
		must.WriteFile(t, file, text)
	}
	write("users: {}\n")
	source := &fakeSource{settings: config.User{Root: "/bob", Permissions: []config.Permission{config.List},
		PathPermissions: map[string][]config.Permission{"/in": {config.Write}}, Quota: 1 << 20}}
	r := withSources(t, map[string]*config.Tenant{
		"acme": {Bucket: "acme-data", UsersFile: file, Auth: config.Auth{FTP: config.OldServer{Address: "old.example:21"}}},
		"umbrella": {Bucket: "umbrella-data",
			Users: map[string]*config.User{"carol": {PasswordHash: servicetest.PasswordHash()}}},
	}, source, "acme")
	var log bytes.Buffer
	r.log = slog.New(slog.NewTextHandler(&log, nil))
	read := func() *usersfile.Document {
		t.Helper()
		d, err := usersfile.Parse([]byte(must.ReadFile(t, file)))
		must.OK(t, err)
		return d
	}

	const parallel = 3
	moved := make(chan string, parallel)
	var group sync.WaitGroup
	for range parallel {
		group.Go(func() {
			got, err := login(r, "", "bob@acme", password)
			if err != nil {
				t.Error(err)
				return
			}
			moved <- got.MovedFrom
		})
	}
	group.Wait()
	close(moved)
	var from []string
	for m := range moved {
		from = append(from, m)
	}
	if got := strings.Join(from, ""); len(from) != parallel || got != "old.example:21" {
		t.Errorf("unexpected moved users %q", from)
	}
	d := read()
	// The file is not in use before the reload, and only the old server knows whether BOB and bob are the same user.
	if got, err := login(r, "", "BOB@acme", password); err != nil || got.MovedFrom != "" || d.Has("BOB") {
		t.Errorf("another spelling was moved too: %v", err)
	}
	right, err := new(passwordhash.Set).Matches(d.Get("bob", "password_hash"), password)
	if err != nil || !right || d.MovedFrom("bob") != "old.example:21" || d.Get("bob", "quota") != "1MiB" {
		text, _ := d.Text()
		t.Errorf("got %v, %v:\n%s", right, err, text)
	}

	for _, tc := range []struct{ name, file, want string }{
		{"carol", "users: {}\n", "has a user with this name too"}, {"dora", "users: {", "invalid YAML"},
	} {
		write(tc.file)
		log.Reset()
		got, err := login(r, "", tc.name+"@acme", password)
		if err != nil || got.MovedFrom != "" || !strings.Contains(log.String(), tc.want) ||
			strings.Contains(log.String(), password) {
			t.Errorf("%s: got %v, %v, log %s", tc.name, got, err, &log)
		}
		if text := must.ReadFile(t, file); text != tc.file {
			t.Errorf("stored %s although the configuration would be invalid: %s", tc.name, text)
		}
	}
}
