package acceptance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// Hashes of password by mkpasswd of Debian 12 (whois 5.5.17): -m yescrypt, -m yescrypt -R 1, and -m sha512crypt.
const (
	debianHash  = "$y$j9T$7SoH3vEuF0lJc60tVo0Ei.$tz6sqCiqjSmPw7NsWEu2hoxCrnQORBOSZjcvaSlIv85"
	cheapHash   = "$y$j75$eSW73wgFqiblR/2F3hlKD/$5szdOmm6D/HO1Fq3CiztQEuuoAJ28KEJ7ziOuQcSBf9"
	sha512Crypt = "$6$qKDrScKwxkhuVczX$VRNsJKKKxD128.0j1ePGN6jYt4Iq5wP8fH/yolMaQxWAFBB3Ii0WzvF2UhcRizmc19eJLT/Au6W4V1xqI97Nb0"
)

// Users of a Debian system log in with their passwords, whose hashes become argon2id in users_file. At the same time
// administrators change the file, and nothing is lost.
func TestPasswordsAreRehashed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "users.yaml")
	text := "# partners\nusers:\n  debian: {password_hash: " + debianHash + ", root: /debian} # from /etc/shadow\n"
	const others = 5
	for i := range others {
		text += fmt.Sprintf("  user%d: {password_hash: %s}\n", i, []string{cheapHash, sha512Crypt}[i%2])
	}
	must.WriteFile(t, file, text)
	s := newReloadSite(t, "    users_file: "+file)
	s.login("debian@acme", 230).Store("/file", "at home")
	var group sync.WaitGroup
	for i := range others {
		group.Go(func() { s.login(fmt.Sprintf("user%d@acme", i), 230) })
		group.Go(func() {
			launch(t, binary(t), "users", "set", fmt.Sprintf("user%d@acme", i), "quota=1GiB", "--config", s.file).succeed()
		})
	}
	group.Wait()
	rehashed := func() int { return strings.Count(must.ReadFile(t, file), "$argon2id$v=19$m=19456,t=2,p=1$") }
	waitUntil(t, func() bool { return rehashed() == 1+others }, func() { t.Fatal(must.ReadFile(t, file)) })
	text = must.ReadFile(t, file)
	if !strings.HasPrefix(text, "# partners\n") || !strings.Contains(text, ", root: /debian} # from /etc/shadow\n") ||
		strings.Count(text, "quota: 1GiB") != others || strings.Contains(text, "$y$") || strings.Contains(text, "$6$") {
		t.Errorf("the file is\n%s", text)
	}
	for i := range others {
		s.login(fmt.Sprintf("user%d@acme", i), 230)
	}
	c := s.login("debian@acme", 230)
	c.Want("at home", "RETR /file")
	log := s.server.stderr.String()
	if strings.Count(log, "rehashed a password with argon2id") < 1+others || strings.Contains(log, password) || strings.Contains(log, "$y$") {
		t.Errorf("the log is\n%s", log)
	}
}

// A users_file on a read-only mount, like a Secret of Kubernetes, is not written, and its users can log in.
func TestHashesInAReadOnlyFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	users, program := filepath.Join(folder, "users.yaml"), filepath.Join(t.TempDir(), "babelftp")
	text := "users: {debian: {password_hash: " + cheapHash + "}}\n"
	must.WriteFile(t, users, text)
	must.OK(t, os.WriteFile(program, fmt.Appendf(nil, `#!/bin/sh
exec unshare --map-root-user --mount sh -c '
	mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"' %s %s "$@"
`, folder, binary(t)), 0o700))
	s := &reloadSite{site: &site{program: program}, t: t}
	s.open(t, s3test.Start(t, "minio"), "    users_file: "+users)
	s.after("passwords are not rehashed", func() { s.login("debian@acme", 230) })
	if log := s.server.stderr.String(); !strings.Contains(log, "read-only file system") {
		t.Errorf("the log is\n%s", log)
	}
	s.login("debian@acme", 230)
	if got := must.ReadFile(t, users); got != text {
		t.Errorf("the file is\n%s", got)
	}
}
