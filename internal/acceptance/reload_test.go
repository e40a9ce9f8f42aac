package acceptance_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

const (
	reloaded = `msg="configuration reloaded"`
	refused  = `msg="invalid configuration; keeping the previous one"`
)

// A reloadSite is a site whose configuration changes while it runs.
type reloadSite struct {
	*site
	t    *testing.T
	file string // the configuration
}

func newReloadSite(t *testing.T, lines ...string) *reloadSite {
	t.Helper()
	s := newSite(t, s3test.Start(t, "minio"), lines...)
	return &reloadSite{site: s, t: t, file: filepath.Join(filepath.Dir(s.ca), "babelftp.yaml")}
}

// edit replaces texts in the configuration and waits for a log line.
func (s *reloadSite) edit(want string, oldnew ...string) {
	s.t.Helper()
	text := must.ReadFile(s.t, s.file)
	changed := strings.NewReplacer(oldnew...).Replace(text)
	if changed == text {
		s.t.Fatalf("the configuration lacks %q", oldnew)
	}
	s.after(want, func() { must.ReplaceFile(s.t, s.file, changed) })
}

// after runs do and waits for one more log line that contains want.
func (s *reloadSite) after(want string, do func()) {
	s.t.Helper()
	count := func() int { return strings.Count(s.server.stderr.String(), want) }
	before := count()
	do()
	waitUntil(s.t, func() bool { return count() > before }, func() { s.t.Fatalf("missing another line with %s", want) })
}

// login logs in and checks the code of the last reply.
func (s *reloadSite) login(user string, code int) *ftptest.Client {
	s.t.Helper()
	c := ftptest.Dial(s.t, s.address)
	c.Command(331, "USER "+user)
	c.Command(code, "PASS "+password)
	return c
}

// Users, tenants, texts and settings change without a restart and without ending transfers. A broken configuration
// changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	s := newReloadSite(t, "      bob: {password_hash: HASH}")
	alice, bob := s.login("alice@acme", 230), s.login("bob", 230)
	alice.Command(200, "TYPE I")
	data := alice.Data()
	alice.Command(150, "STOR late")
	write := func(text string) {
		t.Helper()
		must.Write(t, data, text)
	}
	write("before, ")
	hash := s.metric(t, "babelftp_config_hash")

	// Add a user, remove a user, and remove a tenant.
	s.login("carol", 530)
	s.edit(reloaded, "      bob: {", "      carol: {")
	s.login("carol", 230).Command(257, "MKD here")
	s.login("bob", 530)
	bob.Store("of-bob", "bob has logged in before")
	s.mustStore(t, "of-bob", []byte("bob has logged in before"))
	if s.metric(t, "babelftp_config_hash") == hash || s.metric(t, "babelftp_config_reload_success") != 1 {
		t.Error("the metrics do not show the new configuration")
	}
	write("between, ")

	// A broken configuration is rejected with its position. A signal reloads the file.
	s.edit(refused, "bucket:", "buckets:")
	line := s.server.expect(s.server.stderr, refused+` file=(\S+) line=(\d+) column=5 key=tenants.umbrella.buckets`)
	if line[1] != s.file || s.metric(t, "babelftp_config_reload_success") != 0 {
		t.Errorf("refused %s: success metric = %v", line[0], s.metric(t, "babelftp_config_reload_success"))
	}
	s.login("carol", 230)
	s.after(refused, func() { s.server.signal(syscall.SIGHUP) })
	s.edit(reloaded, "buckets:", "bucket:")
	if s.metric(t, "babelftp_config_reload_success") != 1 {
		t.Error("the configuration was refused again")
	}
	s.after(reloaded, func() { s.server.signal(syscall.SIGHUP) })

	// Settings that need a restart are named, and the others take effect.
	s.edit(
		reloaded, "listen: \"127.0.0.1:0\"\nmetrics_listen", "listen: \"127.0.0.1:1\"\nmemory: 64MiB\nmetrics_listen",
		"Willkommen bei", "Neues von")
	for _, key := range []string{"listen", "memory"} {
		s.server.expect(s.server.stderr, `level=WARN msg="a changed value or file needs a restart[^"]*" key=`+key)
	}
	if got := ftptest.Dial(t, s.address).Command(220, "HOST ftp.umbrella.example"); !strings.Contains(
		got, "Neues von Umbrella") {
		t.Errorf("the greeting is %q", got)
	}

	write("after")
	_ = data.Close()
	alice.Reply(226)
	s.mustStore(t, "late", []byte("before, between, after"))
}
