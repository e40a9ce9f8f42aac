package bans

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/bans/store"
	"github.com/babelftp/babelftp/internal/config/encryption"
	"github.com/babelftp/babelftp/internal/config/limit"
	"github.com/babelftp/babelftp/internal/limits"
	"github.com/babelftp/babelftp/internal/redistest"
)

// waitTimeout is how long a test waits for what must come, on a busy machine.
const waitTimeout = time.Minute

// A replica is a list that shares a store.
type replica struct {
	*List
	t    *testing.T
	up   atomic.Bool
	errs atomic.Int64
	made atomic.Int64 // bans that this replica reported

	mu  sync.Mutex
	log strings.Builder
}

// Write takes a line of the log.
func (r *replica) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(line)
}

// lines counts the lines of the log that have a text.
func (r *replica) lines(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Count(r.log.String(), text)
}

// newReplica is a replica that shares from now on, until the test ends.
func newReplica(t *testing.T, s *redistest.Server) *replica {
	t.Helper()
	r := &replica{t: t}
	cfg := limit.Bans{AddressScore: 4, UserScore: 4, Time: time.Hour, HalfLife: time.Hour}
	r.List = New(cfg, limit.Networks{}, slog.New(slog.NewTextHandler(r, nil)), func(string) { r.made.Add(1) })
	authorities, err := encryption.Authorities(s.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := store.New(s.URL(), authorities)
	if err != nil {
		t.Fatal(err)
	}
	r.UseStore(shared)
	ctx, cancel := context.WithCancel(t.Context())
	var sharing sync.WaitGroup
	sharing.Go(func() {
		r.Share(ctx, func(err error) {
			r.up.Store(err == nil)
			if err != nil {
				r.errs.Add(1)
			}
		})
	})
	t.Cleanup(func() {
		cancel()
		sharing.Wait()
		_ = shared.Close()
	})
	return r
}

// waitFor waits until something is so.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.Now().Add(waitTimeout)
	for !so() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *replica) waitUp(up bool) {
	r.t.Helper()
	waitFor(r.t, fmt.Sprintf("a store that answers (%v)", up), func() bool { return r.up.Load() == up })
}

// waitBanned waits until the names are banned, and no others.
func (r *replica) waitBanned(names ...string) {
	r.t.Helper()
	waitFor(r.t, fmt.Sprint("bans of ", names), func() bool { return fmt.Sprint(r.names()) == fmt.Sprint(names) })
}

func (r *replica) names() (names []string) {
	for _, b := range r.All() {
		names = append(names, b.Name)
	}
	return names
}

// fail lets logins from an address fail.
func (r *replica) fail(addr, user string, times int) {
	for range times {
		r.LoginFailed(netip.MustParseAddr(addr), user)
	}
}

// Replicas count failures together, and a ban of one refuses and cuts sessions at all. An administrator ends it at any of them.
func TestShare(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *redistest.Server{"redis": redistest.Start, "tls": redistest.StartTLS} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			a, b := newReplica(t, s), newReplica(t, s)
			a.waitUp(true)
			b.waitUp(true)
			session, cut := context.WithCancelCause(t.Context())
			leave, err := b.Enter(&limits.Session{Addr: netip.MustParseAddr("203.0.113.7"), Cut: cut})
			if err != nil {
				t.Fatal(err)
			}
			defer leave()
			a.fail("203.0.113.7", "x@acme", 2)
			b.fail("203.0.113.7", "y@acme", 2)
			a.waitBanned("203.0.113.7")
			b.waitBanned("203.0.113.7")
			<-session.Done()
			if err := context.Cause(session); refusedBy(err) != limits.Bans {
				t.Errorf("the session is cut by %v", err)
			}
			if n := a.made.Load() + b.made.Load(); n != 1 {
				t.Errorf("%d replicas report the ban, want 1", n)
			}
			if reason := b.All()[0].Reason; reason != "failed logins" {
				t.Errorf("the reason is %q", reason)
			}
			if left := time.Until(a.All()[0].Until); left > time.Hour+time.Second || left < time.Hour-waitTimeout {
				t.Errorf("the ban lasts for %s", left)
			}

			a.Add(t.Context(), "alice@acme", time.Minute)
			b.waitBanned("203.0.113.7", "alice@acme")
			if !b.Remove(t.Context(), "203.0.113.7") {
				t.Error("the ban is not found at the other replica")
			}
			a.waitBanned("alice@acme")
			b.fail("203.0.113.7", "z@acme", 3) // the failures were forgotten
			a.Add(t.Context(), "198.51.100.0/24", 0)
			a.Add(t.Context(), "198.51.100.0/24", time.Minute) // shorter
			late := newReplica(t, s)
			late.waitBanned("198.51.100.0/24", "alice@acme")
			if left := time.Until(late.All()[0].Until); left > 2*time.Minute { // not an hour
				t.Errorf("the ban of a network lasts for %s", left)
			}
			if a.UnknownUser("hunter2") != late.UnknownUser("hunter2") {
				t.Error("replicas do not count failures of an unknown user together")
			}
		})
	}
}

// While the store is down, replicas count for themselves. Then they share what they have, also if the store has lost all.
func TestStoreRestarts(t *testing.T) {
	s := redistest.Start(t)
	a, b := newReplica(t, s), newReplica(t, s)
	a.waitUp(true)
	b.waitUp(true)
	a.Add(t.Context(), "203.0.113.1", 0)
	a.Add(t.Context(), "203.0.113.2", 0)
	b.waitBanned("203.0.113.1", "203.0.113.2")
	s.Kill()
	a.waitUp(false)
	b.waitUp(false)
	a.fail("203.0.113.3", "", 4)
	a.waitBanned("203.0.113.1", "203.0.113.2", "203.0.113.3")
	s.Restart()
	a.waitUp(true)
	b.waitUp(true)
	a.waitBanned("203.0.113.1", "203.0.113.2", "203.0.113.3")
	b.waitBanned("203.0.113.1", "203.0.113.2", "203.0.113.3")
	for _, r := range []*replica{a, b} {
		// A store that is too slow for a moment, on a busy machine, is down once more.
		if down, up := r.lines("limits.store does not answer"), r.lines("limits.store answers"); down < 1 || up != down+1 {
			t.Errorf("the log says %d times that the store is down and %d times that it answers, want one line for each change", down, up)
		}
		if r.errs.Load() == 0 {
			t.Error("no error was observed")
		}
	}
}

// A store that does not answer delays no login, and no failure is lost. Bans that are made and ended in this time reach the others later.
func TestStoreHangs(t *testing.T) {
	s := redistest.Start(t)
	a, b := newReplica(t, s), newReplica(t, s)
	a.waitUp(true)
	b.waitUp(true)
	b.Add(t.Context(), "203.0.113.1", 0)
	a.waitBanned("203.0.113.1")
	s.Pause()
	a.fail("203.0.113.7", "alice@acme", 4) // returns
	a.waitBanned("203.0.113.1", "203.0.113.7", "alice@acme")
	a.waitUp(false)
	b.waitUp(false)
	if !b.Remove(t.Context(), "203.0.113.1") {
		t.Error("a replica forgets the bans of the others while the store does not answer")
	}
	s.Continue()
	a.waitBanned("203.0.113.7", "alice@acme")
	b.waitBanned("203.0.113.7", "alice@acme")
}

// A database that another program empties gets the bans again.
func TestStoreIsEmptied(t *testing.T) {
	s := redistest.Start(t)
	a, b := newReplica(t, s), newReplica(t, s)
	a.waitUp(true)
	b.waitUp(true)
	a.Add(t.Context(), "203.0.113.1", 0)
	b.waitBanned("203.0.113.1")
	s.Do("FLUSHALL")
	b.Add(t.Context(), "203.0.113.2", 0)
	a.waitBanned("203.0.113.1", "203.0.113.2")
	b.waitBanned("203.0.113.1", "203.0.113.2")
	waitFor(t, "the bans in the store", func() bool { return s.Do("ZCARD {babelftp}:bans")[0] == ":2" })
}

// All keys end, and none has a password.
func TestKeys(t *testing.T) {
	s := redistest.Start(t)
	a := newReplica(t, s)
	a.waitUp(true)
	a.fail("203.0.113.7", a.UnknownUser("hunter2"), 1)
	a.fail("203.0.113.8", "", 4)
	a.waitBanned("203.0.113.8")
	keys := s.Do("KEYS *")
	if keys[0] != "*5" { // two scores, bans, reasons, version
		t.Errorf("the keys are %q", keys)
	}
	for _, key := range keys[1:] {
		if strings.Contains(key, "hunter2") {
			t.Errorf("a key is %q", key)
		}
		if strings.HasPrefix(key, "{") && strings.HasPrefix(s.Do("PTTL " + key)[0], ":-") {
			t.Errorf("%q never ends", key)
		}
	}
}

// A store that refuses the password is one that does not answer, and messages do not show the URL.
func TestStoreRefuses(t *testing.T) {
	s := redistest.Start(t)
	s.Do("CONFIG SET requirepass another")
	a := newReplica(t, s)
	waitFor(t, "an error", func() bool { return a.errs.Load() > 0 })
	waitFor(t, "a line of the log", func() bool { return a.lines("limits.store does not answer") == 1 })
	if a.lines("redis://") > 0 {
		t.Error("the log has the URL")
	}
	a.fail("203.0.113.7", "", 4)
	a.waitBanned("203.0.113.7")
}
