package acceptance_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// configureUsers writes the configuration of a replica with users in the shared state. users_file is used until it is
// removed. An address is banned after some failed logins.
func (s *stateSite) configureUsers(name, usersFile string, failures int) *stateReplica {
	storage := s.proxy.Server()
	r := &stateReplica{socket: s.dir.file(name + ".sock")}
	r.config = s.dir.write(name+".yaml", fmt.Appendf(nil, `
listen: 127.0.0.1:0
metrics_listen: ""
admin_socket: %q
limits: {address: {sessions: 0}, bans: {address_score: %d, user_score: 100000}}
s3: {endpoint: %q, region: %s, path_style: true, access_key_id: %q, secret_access_key: %q}
state: {bucket: %s, keys: %q, folder: %q}
tenants:
  acme: {bucket: %s, users_store: state, users_file: %q}
`, r.socket, failures, storage.Endpoint, storage.Region, storage.AccessKeyID, storage.SecretAccessKey, s.buckets[1], s.key,
		s.dir.file(name+"-state"), s.buckets[0], usersFile))
	return r
}

// login returns the last line of the reply to a login, and the session.
func (r *stateReplica) login(t *testing.T, user, password string) (string, *ftptest.Conn) {
	t.Helper()
	conn, err := ftptest.Open(r.address)
	must.OK(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = conn.Reply()
	_, _ = conn.Send("USER " + user)
	reply, _ := conn.Send("PASS " + password)
	return reply, conn
}

// awaitLogin waits until a login gets a reply that begins with want, on all replicas, for at most the time in which a
// change is visible.
func awaitLogin(t *testing.T, replicas []*stateReplica, user, password, want string) {
	t.Helper()
	for n, r := range replicas {
		got := ""
		waitUntil(t, func() bool {
			got, _ = r.login(t, user, password)
			return strings.HasPrefix(got, want)
		}, func() { t.Fatalf("replica %d: the login of %s gives %q, want %s", n, user, got, want) })
	}
}

// TestUsersInSharedState starts three replicas with users in the shared state: users are moved there from a file, and
// added, changed, disabled and removed with commands, while S3 works and while it is down, also at a start.
func TestUsersInSharedState(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"minio", "versitygw"} {
		t.Run(name, func(t *testing.T) { testUsersInState(t, s3test.Start(t, name)) })
	}
}

func testUsersInState(t *testing.T, storage *s3test.Server) {
	s := &stateSite{
		t: t, dir: newFolder(t), proxy: s3test.StartProxy(t, storage),
		buckets: [2]string{storage.Bucket(t), storage.Bucket(t)},
		key:     base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))),
	}
	file := s.dir.write("users.yaml", fmt.Appendf(nil, "# Ours.\nusers:\n  # From the file.\n  fred: {password_hash: %q}\n",
		servicetest.PasswordHash().Reveal()))
	var replicas []*stateReplica
	for n := range 3 {
		replicas = append(replicas, s.configureUsers(fmt.Sprintf("replica-%d", n), file, 100_000))
	}
	for _, r := range replicas {
		s.start(r)
	}
	users := func(args ...string) string {
		t.Helper()
		return launch(t, binary(t), append(append([]string{"users"}, args...), "--config", replicas[0].config)...).succeed()
	}
	const password = servicetest.Password
	secret := s.dir.write("password", []byte(password+"\n"))

	awaitLogin(t, replicas, "fred", password, "230")
	if out := users("move", "acme", "--to", "state", "--dry-run"); !strings.Contains(out, "1 user would be moved") {
		t.Errorf("a dry run prints %q", out)
	}
	users("move", "acme", "--to", "state")
	if text := must.ReadFile(t, file); text != "# Ours.\nusers: {}\n" {
		t.Errorf("after the move, the file is %q", text)
	}
	awaitLogin(t, replicas, "fred", password, "230")

	// A user can log in on all replicas, and is disconnected on all of them.
	users("add", "alice", "--password-file", secret, "--permissions", "list,read,write,password", "--must-change")
	awaitLogin(t, replicas, "alice", password, "230")
	reply, alice := replicas[1].login(t, "alice", password)
	if !strings.Contains(reply, "SITE PSWD") {
		t.Errorf("the reply to the login is %q", reply)
	}
	if reply, _ = alice.Send("MKD x"); !strings.HasPrefix(reply, "530") {
		t.Errorf("MKD before the change: %q", reply)
	}
	const changed = "correct horse battery"
	if reply, _ = alice.Send(fmt.Sprintf(`SITE PSWD "%s" "%s"`, password, changed)); !strings.HasPrefix(reply, "200") {
		t.Errorf("SITE PSWD: %q", reply)
	}
	if reply, _ = alice.Send("SIZE x"); !strings.HasPrefix(reply, "550") {
		t.Errorf("SIZE after the change: %q", reply)
	}
	awaitLogin(t, replicas, "alice", changed, "230")
	users("disable", "alice")
	awaitLogin(t, replicas, "alice", changed, "530")
	if reply, _ = alice.Reply(); !strings.HasPrefix(reply, "421") {
		t.Errorf("the session of a disabled user gets %q", reply)
	}
	users("enable", "alice")
	awaitLogin(t, replicas, "alice", changed, "230")

	// Two administrators change one user at once: each change is there, or its command failed.
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			setting := fmt.Sprintf("path_permissions./%d=list", n)
			p := launch(t, binary(t), "users", "set", "alice", setting, "--config", replicas[n].config)
			failed := p.wait() != 0
			if failed && !strings.Contains(p.stderr.String(), "somebody else changed the user at the same time") {
				t.Errorf("users set: %s", p.stderr.String())
			}
			list := launch(t, binary(t), "users", "set", "alice", fmt.Sprintf("path_permissions./%d=", n), "--config", replicas[n].config)
			if !failed && list.wait() != 0 && !strings.Contains(list.stderr.String(), "somebody else") {
				t.Errorf("users set: %s", list.stderr.String())
			}
		})
	}
	all.Wait()

	// While S3 is down, the users are known, also after a start. A replica without a copy cannot know them.
	awaitLogin(t, replicas, "alice", changed, "230")
	waitUntil(t, func() bool {
		_, err := os.Stat(filepath.Join(s.dir.file("replica-2-state"), "state.json"))
		return err == nil
	}, func() { t.Fatal("no copy of the state") })
	replicas[2].signal(15)
	replicas[2].wait()
	down := s.proxy.Inject(s3test.Fault{Effect: s3test.Refuse(503, "SlowDown")})
	s.start(replicas[2])
	if reply, _ := replicas[2].login(t, "alice", "wrong"); !strings.HasPrefix(reply, "530") {
		t.Errorf("a wrong password while S3 is down gives %q", reply)
	}
	fresh := s.configureUsers("replica-3", file, 3)
	s.start(fresh)
	for range 5 { // does not count for bans
		if reply, _ := fresh.login(t, "alice", changed); !strings.HasPrefix(reply, "421") {
			t.Errorf("a login without users gives %q", reply)
		}
	}
	p := launch(t, binary(t), "users", "disable", "alice", "--config", replicas[0].config)
	if p.wait() == 0 || !strings.Contains(p.stderr.String(), "state s3://") {
		t.Errorf("users disable without S3: %s", p.stderr.String())
	}
	down.End()
	awaitLogin(t, []*stateReplica{replicas[2], fresh}, "alice", changed, "230")

	users("move", "acme", "--to", "file")
	if text := must.ReadFile(t, file); !strings.Contains(text, "  # From the file.\n  fred:") || !strings.Contains(text, "\n  alice:") {
		t.Errorf("after the move back, the file is %q", text)
	}
	awaitLogin(t, replicas, "fred", password, "230")
	users("remove", "alice")
	awaitLogin(t, replicas, "alice", changed, "530")
	if out := users("list"); strings.Contains(out, "alice") || !strings.Contains(out, "users_file") {
		t.Errorf("users list prints %q", out)
	}
}
