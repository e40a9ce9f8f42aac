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

// work is the processor time of a request.
const work = 2 * time.Millisecond

// A busyServer simulates a server whose processors are shared by the requests in flight.
type busyServer struct {
	processors float64
	latency    time.Duration // uses no processor

	mu          sync.Mutex
	inFlight    int
	maxInFlight int
	done        float64 // processor seconds that each request has received until since
	since       time.Time
	changed     chan struct{} // closed when inFlight changes
}

// handle handles a request.
func (s *busyServer) handle() {
	time.Sleep(s.latency)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(1)
	defer s.count(-1)
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

func (s *busyServer) speed() float64 { return min(1, s.processors/float64(s.inFlight)) }

func (s *busyServer) progress() {
	now := time.Now()
	if s.inFlight > 0 {
		s.done += s.speed() * now.Sub(s.since).Seconds()
	}
	s.since = now
}

func (s *busyServer) count(n int) {
	s.progress()
	s.inFlight += n
	s.maxInFlight = max(s.maxInFlight, s.inFlight)
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = make(chan struct{})
}

// requests makes n requests of a user, one after another.
func (s *busyServer) requests(t *testing.T, user *User, n int) {
	for range n {
		turn, err := user.Begin(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		s.handle()
		turn.Responded(Kind{Operation: "PutObject"})
		turn.End()
	}
}

// newRequests returns a scheduler for a nearby or distant server.
func newRequests(far bool) *Requests { return NewRequests(func(time.Time) bool { return far }) }

// TestBusyOthers checks that the requests of one user are not much slower next to many sessions of others.
func TestBusyOthers(t *testing.T) {
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
				if maxTime := requests * work * 8 / 5; took > maxTime {
					t.Errorf("%d requests took %v next to %d sessions, want at most %v", requests, took, sessions, maxTime)
				}
				synctest.Wait() // for the end of the turn
				r.queue.checkEmpty(t)
			})
		})
	}
}

// TestNoLimit checks the cases in which requests do not wait.
func TestNoLimit(t *testing.T) {
	for _, test := range []struct {
		label       string
		users       int
		far         bool
		processors  float64
		minInFlight int // lower bound of the highest number of requests in flight
	}{
		{"single-user", 1, false, 2, 100},
		{"distant-server", 2, true, 2, 100},
		{"fast-server", 2, false, 1000, 90},
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
				if server.maxInFlight < test.minInFlight {
					t.Errorf("up to %d requests in flight, want at least %d", server.maxInFlight, test.minInFlight)
				}
				synctest.Wait() // for the end of the turn
				r.queue.checkEmpty(t)
			})
		})
	}
}

// TestServerBecomesSlow checks that the limit adapts when all requests take longer than before.
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
		server.maxInFlight = 0
		load()
		synctest.Wait() // for the end of the last turn
		r.queue.checkEmpty(t)
		// The limit at the end means nothing, because one user then has only few requests left.
		if server.maxInFlight < 30 {
			t.Errorf("up to %d requests in flight to a slow server, want at least 30", server.maxInFlight)
		}
	})
}

// occupy begins turns of a user until no more are free, and returns them.
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

// twoUsers returns two active users of a busy server with a limit of one request for each.
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

// TestLongRequest checks that others do not wait for a long request, or for a body that the caller does not read.
func TestLongRequest(t *testing.T) {
	for label, test := range map[string]struct {
		pause bool
		wait  time.Duration
	}{"request": {false, maxTurn}, "body": {true, maxReadingPause}} {
		t.Run(label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				alice, _ := twoUsers(t)
				turns := occupy(t, alice)
				if len(turns) != 1 {
					t.Fatalf("got %d turns of a user", len(turns))
				}
				if test.pause {
					turns[0].Pause()
				}
				begin := time.Now()
				next, err := alice.Begin(t.Context())
				if took := time.Since(begin); err != nil || took != test.wait {
					t.Errorf("the next request began after %v: %v", took, err)
				}
				if turns[0].Resume() {
					t.Error("the first turn has not ended")
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

// TestUserWithOneSession checks that the pace shrinks if many sessions of one user slow down another user.
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
			t.Errorf("pace %.1f, want at most %d", r.pace, oneEach)
		}
		r.mu.Unlock()
		stop.Store(true)
		others.Wait()
		r.queue.checkEmpty(t)
	})
}

// TestPause checks the length of the pause of a user with more requests, and that other users do not pause.
func TestPause(t *testing.T) {
	for _, test := range []struct {
		label string
		pace  float64
		took  time.Duration
		want  time.Duration
	}{
		{"half-of-the-time", 1, work, work},
		{"quarter-of-the-time", 0.5, work, 3 * work},
		{"long-request", 0.5, time.Second / 2, maxPause},
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
					t.Errorf("other user: waited %v: %v", waited, err)
				}
				turn.End()
				if pause := (<-began).Sub(ended); pause != test.want {
					t.Errorf("pause of %v after a request that took %v, want %v", pause, test.took, test.want)
				}
				synctest.Wait() // for the end of the turn
				r.queue.checkEmpty(t)
			})
		})
	}
}

// TestRoundRobin checks that turns rotate between tenants, and between the users of each tenant. Users without a turn
// come first.
func TestRoundRobin(t *testing.T) {
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
			t.Errorf("order %s, want %s", got, want)
		}
		r.queue.checkEmpty(t)
	})
}
