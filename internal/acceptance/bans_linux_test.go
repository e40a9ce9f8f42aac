package acceptance_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/redistest"
	"github.com/babelftp/babelftp/internal/s3test"
)

// A banningSite is a replica that shares its bans.
type banningSite struct {
	*site
	t      *testing.T
	socket string
}

// newBanningSite starts a replica that counts failures in a store.
func newBanningSite(t *testing.T, storage *s3test.Server, buckets map[string]string, store string) *banningSite {
	t.Helper()
	b := &banningSite{site: &site{storage: storage, client: storage.Client(), buckets: buckets}, t: t}
	b.socket = filepath.Join(t.TempDir(), "admin.sock")
	file := b.configure(t)
	limits := fmt.Sprintf("admin_socket: %q\nlimits: {store: %q, bans: {address_score: 4, time: 1h, half_life: 24h}, failed_login_delay: 0s, ", b.socket, store)
	replaceIn(t, file, "limits: {", limits)
	b.start(t, file)
	return b
}

// login lets curl log in from an address of the loopback network and list the root. It returns the code of the last reply.
func (b *banningSite) login(from, user, password string) string {
	b.t.Helper()
	curl := launch(b.t, "curl", "--silent", "--verbose", "--interface", from, "--user", user+":"+password, "ftp://"+b.address+"/")
	curl.wait()
	replies := regexp.MustCompile(`(?m)^< (\d{3}) `).FindAllStringSubmatch(curl.stderr.String(), -1)
	if len(replies) == 0 {
		b.t.Fatalf("curl got no reply: %s", curl.stderr)
	}
	return replies[len(replies)-1][1]
}

// mustAnswer wants a code as the last reply to a login with the right password.
func (b *banningSite) mustAnswer(code, from, user string) {
	b.t.Helper()
	if got := b.login(from, user, password); got != code {
		b.t.Errorf("%s logs in from %s: %s, want %s", user, from, got, code)
	}
}

// guess sends wrong passwords. The last one may bring a ban, which cuts the session before or after its reply.
func (b *banningSite) guess(from string, times int) {
	b.t.Helper()
	for i := range times {
		code := b.login(from, "alice@acme", "guess")
		if code != "530" && (code != "421" || i < times-1) {
			b.t.Errorf("guess %d from %s gets %s", i+1, from, code)
		}
	}
}

// bans runs babelftp bans.
func (b *banningSite) bans(args ...string) string {
	b.t.Helper()
	return launch(b.t, binary(b.t), append([]string{"bans", "--socket", b.socket}, args...)...).succeed()
}

// mustBan waits until babelftp bans lists these names, and no others.
func (b *banningSite) mustBan(names ...string) {
	b.t.Helper()
	var list string
	waitUntil(b.t, func() bool {
		list = b.bans("list")
		lines := strings.Split(strings.TrimSpace(list), "\n")[1:]
		for i, line := range lines {
			if i >= len(names) || strings.Fields(line)[0] != names[i] {
				return false
			}
		}
		return len(lines) == len(names)
	}, func() { b.t.Fatalf("babelftp bans shows\n%s\nwant %q", list, names) })
}

// Two servers share bans by a Redis server: what one bans, the other refuses, and babelftp bans shows and ends the bans of both. When Redis is killed,
// each continues with its own counters, and a metric says so. When Redis is back, they share the bans again, also those made meanwhile.
func TestBansOfReplicas(t *testing.T) {
	t.Parallel()
	const (
		guesser, second, third, honest = "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.9"
		up                             = "babelftp_limits_store_up"
	)
	redis := redistest.Start(t)
	storage := s3test.Start(t, "minio")
	buckets := map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}
	a, b := newBanningSite(t, storage, buckets, redis.URL()), newBanningSite(t, storage, buckets, redis.URL())
	both := []*banningSite{a, b}
	for _, s := range both {
		s.awaitMetric(t, up, 1)
	}

	a.guess(guesser, 4)
	b.mustBan(guesser)
	for _, s := range both {
		s.mustAnswer("421", guesser, "alice@acme")
		s.mustAnswer("226", honest, "alice@acme")
	}
	b.bans("remove", guesser)
	for _, s := range both {
		s.mustBan()
		s.mustAnswer("226", guesser, "alice@acme")
	}
	a.bans("add", "alice@umbrella")
	b.mustBan("alice@umbrella")
	b.mustAnswer("421", honest, "alice@umbrella")

	redis.Kill()
	for _, s := range both {
		s.awaitMetric(t, up, 0)
		s.mustAnswer("421", honest, "alice@umbrella")
	}
	if b.metric(t, "babelftp_limits_store_errors_total") == 0 {
		t.Error("no error of the store is counted")
	}
	b.guess(second, 2) // which counts at b alone
	a.guess(second, 4)
	a.mustBan(second, "alice@umbrella")
	a.mustAnswer("421", second, "alice@acme")
	b.mustBan("alice@umbrella")
	b.mustAnswer("226", second, "alice@acme")

	redis.Restart()
	for _, s := range both {
		s.awaitMetric(t, up, 1)
	}
	b.mustBan(second, "alice@umbrella")
	b.mustAnswer("421", second, "alice@acme")
	a.guess(third, 2)
	b.guess(third, 2)
	for _, s := range both {
		s.mustBan(second, third, "alice@umbrella")
		s.mustAnswer("421", third, "alice@acme")
		if text := s.server.stderr.String(); strings.Contains(text, "level=ERROR") {
			t.Errorf("the log has an error: %s", text)
		}
	}
}
