package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// work is how long a request takes when it is alone.
const work = 2 * time.Millisecond

// A busyServer has some processors, which the requests under way share.
type busyServer struct {
	processors float64
	latency    time.Duration // which takes no processor

	mu       sync.Mutex
	underWay int
	most     int
	done     float64   // seconds of a processor that each request has had until since
	since    time.Time // when another number of requests was under way
	changed  chan struct{}
}

// answer returns when a request has had its work.
func (s *busyServer) answer() {
	time.Sleep(s.latency)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(1)
	defer s.enter(-1)
	end := s.done + work.Seconds()
	for s.done < end-1e-9 {
		left := time.Duration((end - s.done) / s.speed() * float64(time.Second))
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-time.After(left + 1):
		case <-changed:
		}
		s.mu.Lock()
		s.progress()
	}
}

func (s *busyServer) speed() float64 { return min(1, s.processors/float64(s.underWay)) }

func (s *busyServer) progress() {
	now := time.Now()
	if s.underWay > 0 {
		s.done += s.speed() * now.Sub(s.since).Seconds()
	}
	s.since = now
}

func (s *busyServer) enter(n int) {
	s.progress()
	s.underWay += n
	s.most = max(s.most, s.underWay)
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = make(chan struct{})
}

// requests makes some requests of a user, one after another.
func (s *busyServer) requests(t *testing.T, user *User, n int) {
	for range n {
		turn, err := user.Begin(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		s.answer()
		turn.Answered(Kind{Operation: "PutObject"})
		turn.End()
	}
}

// newRequests returns the queue before a server that is near, or far away.
func newRequests(far bool) *Requests { return NewRequests(func(time.Time) bool { return far }) }

// TestOthersAreBusy makes requests of one user next to many sessions of others, who begin before.
func TestOthersAreBusy(t *testing.T) {
	const requests, sessions = 500, 100
	for _, test := range []struct {
		label string
		who   func(session int) (tenant, user string)
	}{
		{"one-user", func(int) (string, string) { return "other", "other" }},
		{"user-of-the-same-tenant", func(int) (string, string) { return "acme", "other" }},
		{"many-users-of-a-tenant", func(i int) (string, string) { return "other", fmt.Sprint(i) }},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &busyServer{processors: 2}
				r := newRequests(false)
				var stop atomic.Bool
				var others sync.WaitGroup
				for i := range sessions {
					user := r.For(test.who(i))
					others.Go(func() {
						for !stop.Load() {
							server.requests(t, user, 1)
						}
					})
				}
				time.Sleep(time.Second)
				alice := r.For("acme", "alice")
				server.requests(t, alice, requests) // the limit adapts
				begin := time.Now()
				server.requests(t, alice, requests)
				took := time.Since(begin)
				stop.Store(true)
				others.Wait()
				if most := requests * work * 8 / 5; took > most {
					t.Errorf("%d requests took %v next to %d sessions, want %v at most", requests, took, sessions, most)
				}
				synctest.Wait() // the end of the turn
				r.queue.checkEmpty(t)
			})
		})
	}
}

// TestNoLimit checks where requests do not wait.
func TestNoLimit(t *testing.T) {
	for _, test := range []struct {
		label      string
		users      int
		far        bool
		processors float64
		least      int // requests under way at the most
	}{
		{"user-who-is-alone", 1, false, 2, 100},
		{"distant-server", 2, true, 2, 100},
		{"server-that-has-enough", 2, false, 1000, 90},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &busyServer{processors: test.processors}
				r := newRequests(test.far)
				var all sync.WaitGroup
				for i := range 100 {
					user := r.For("acme", fmt.Sprint(i%test.users))
					all.Go(func() { server.requests(t, user, 100) })
				}
				all.Wait()
				if server.most < test.least {
					t.Errorf("up to %d requests are under way, want %d", server.most, test.least)
				}
				synctest.Wait() // the end of the turn
				r.queue.checkEmpty(t)
			})
		})
	}
}

// TestServerBecomesSlow checks that the limit finds out when all requests take longer than before.
func TestServerBecomesSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &busyServer{processors: 1000}
		r := newRequests(false)
		load := func() {
			var all sync.WaitGroup
			for i := range 40 {
				user := r.For("acme", fmt.Sprint(i%2))
				all.Go(func() { server.requests(t, user, 500) })
			}
			all.Wait()
		}
		load()
		time.Sleep(time.Minute)
		server.latency = 9 * work
		load()
		server.most = 0
		load()
		synctest.Wait() // the end of the last turn
		r.queue.checkEmpty(t)
		// The limit at the end tells nothing: by then one user has few requests left.
		if server.most < 30 {
			t.Errorf("up to %d requests are under way before a server that has become slow for each", server.most)
		}
	})
}

// occupy takes turns of a user until no more are free, and returns them.
func occupy(t *testing.T, user *User) []*Turn {
	t.Helper()
	var turns []*Turn
	for {
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan *Turn, 1)
		go func() {
			turn, err := user.Begin(ctx)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			got <- turn
		}()
		synctest.Wait()
		cancel()
		turn := <-got
		if turn == nil {
			return turns
		}
		turns = append(turns, turn)
	}
}

// twoUsers returns two users who are active, before a busy server with a limit of one request for each.
func twoUsers(t *testing.T) (alice, bob *User) {
	t.Helper()
	r := newRequests(false)
	alice, bob = r.For("acme", "alice"), r.For("acme", "bob")
	server := &busyServer{processors: 1}
	server.requests(t, alice, 1)
	server.requests(t, bob, 1)
	r.pace = 2
	return alice, bob
}

// TestLongRequest checks that a request that takes long keeps no other waiting, and neither do bytes that no client
// takes.
func TestLongRequest(t *testing.T) {
	for label, test := range map[string]struct {
		pause bool
		most  time.Duration
	}{"request": {false, maxTurn}, "bytes": {true, maxPause}} {
		t.Run(label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				alice, _ := twoUsers(t)
				turns := occupy(t, alice)
				if len(turns) != 1 {
					t.Fatalf("a user has %d turns", len(turns))
				}
				if test.pause {
					turns[0].Pause()
				}
				begin := time.Now()
				next, err := alice.Begin(t.Context())
				if took := time.Since(begin); err != nil || took != test.most {
					t.Errorf("the next request began after %v: %v", took, err)
				}
				if turns[0].Resume() {
					t.Error("a turn goes on that has ended")
				}
				turns[0].End()
				if !next.Resume() {
					t.Error("the other turn has ended")
				}
				next.End()
				alice.requests.queue.checkEmpty(t)
			})
		})
	}
}

// TestUserWithOneSession checks that the pace becomes slow while many sessions of another user slow one down.
func TestUserWithOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &busyServer{processors: 1}
		r := newRequests(false)
		var stop atomic.Bool
		var others sync.WaitGroup
		for range 100 {
			others.Go(func() {
				for !stop.Load() {
					server.requests(t, r.For("acme", "bob"), 1)
				}
			})
		}
		server.requests(t, r.For("acme", "alice"), 500)
		r.mu.Lock()
		if r.pace > oneEach {
			t.Errorf("the pace is %.1f next to a user with one session", r.pace)
		}
		r.mu.Unlock()
		stop.Store(true)
		others.Wait()
		r.queue.checkEmpty(t)
	})
}

// TestRest checks how long a user rests who has more requests, and that no other one does.
func TestRest(t *testing.T) {
	for _, test := range []struct {
		label string
		pace  float64
		took  time.Duration
		want  time.Duration
	}{
		{"half-of-the-time", 1, work, work},
		{"quarter-of-the-time", 0.5, work, 3 * work},
		{"long-request", 0.5, time.Second / 2, pause},
		{"one-each", 2, work, 0},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				alice, bob := twoUsers(t)
				r := alice.requests
				r.pace = test.pace
				first, err := bob.Begin(t.Context())
				must.OK(t, err)
				began := make(chan time.Time)
				go func() {
					turn, err := bob.Begin(t.Context())
					if err != nil {
						t.Error(err)
					}
					began <- time.Now()
					turn.End()
				}()
				time.Sleep(test.took)
				synctest.Wait()
				first.End()
				ended := time.Now()
				turn, err := alice.Begin(t.Context())
				if waited := time.Since(ended); err != nil || waited > 0 {
					t.Errorf("the other user waits for %v: %v", waited, err)
				}
				turn.End()
				if rest := (<-began).Sub(ended); rest != test.want {
					t.Errorf("a user whose request took %v rests for %v, want %v", test.took, rest, test.want)
				}
				synctest.Wait() // the end of the turn
				r.queue.checkEmpty(t)
			})
		})
	}
}

// TestTurns checks that turns go round tenants, and round the users of each. The user who has none is first.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRequests(false)
		var order []string
		held := make(map[string]*Turn)
		for _, name := range strings.Fields("a/x b/x") {
			tenant, user, _ := strings.Cut(name, "/")
			held[name], _ = r.For(tenant, user).Begin(t.Context())
		}
		for _, name := range strings.Fields("a/x a/x a/y a/x b/x b/z a/y") {
			tenant, user, _ := strings.Cut(name, "/")
			go func() {
				turn, err := r.For(tenant, user).Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, name)
				turn.End()
			}()
			synctest.Wait()
		}
		held["a/x"].End()
		synctest.Wait()
		held["b/x"].End()
		synctest.Wait()
		if got, want := strings.Join(order, " "), "a/x a/y a/x a/y a/x b/z b/x"; got != want {
			t.Errorf("turns are %s, want %s", got, want)
		}
		r.queue.checkEmpty(t)
	})
}
