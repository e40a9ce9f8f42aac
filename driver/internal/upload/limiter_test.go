package upload

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// A partServer takes parts: so much by a connection and so much in all. Both are bytes a second.
type partServer struct {
	connection, server float64
	latency            time.Duration

	mu       sync.Mutex
	underWay int
	most     int
	held     int
	mostHeld int

	// Each connection has taken the same number of bytes since some time.
	taken   float64 // bytes of one connection, until since
	since   time.Time
	changed chan struct{} // closed when another number of parts is under way
}

// store takes a part.
func (s *partServer) store(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(1)
	s.mu.Unlock()
	time.Sleep(s.latency)
	s.mu.Lock()
	for end := s.progress() + float64(bytes); ; {
		left := time.Duration((end - s.progress()) / s.speed() * float64(time.Second))
		if left <= 0 {
			break
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-time.After(left):
		case <-changed:
		}
		s.mu.Lock()
	}
	s.enter(-1)
}

// enter changes the number of parts under way.
func (s *partServer) enter(n int) {
	s.progress()
	s.underWay += n
	s.most = max(s.most, s.underWay)
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = make(chan struct{})
}

// progress returns how many bytes each connection has taken.
func (s *partServer) progress() float64 {
	now := time.Now()
	if s.underWay > 0 {
		s.taken += s.speed() * now.Sub(s.since).Seconds()
	}
	s.since = now
	return s.taken
}

// speed is the bytes that each connection takes in a second.
func (s *partServer) speed() float64 { return min(s.connection, s.server/float64(s.underWay)) }

// set changes the limit.
func (l *Limiter) set(limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = limit
	l.resize()
}

// newLimiter returns a limiter for an endpoint that has answered something after a latency.
func newLimiter(latency time.Duration) *Limiter {
	var stats s3api.Stats
	stats.Observe(time.Now(), latency)
	return NewLimiter(&stats)
}

// upload sends parts that a client fills at a speed.
func (s *partServer) upload(t *testing.T, l *Limiter, client float64, parts int) {
	const size = 5 << 20
	fill := func() {
		s.memory(1)
		time.Sleep(time.Duration(size / client * float64(time.Second)))
	}
	fill()
	transfer := l.Join(16)
	var underWay sync.WaitGroup
	defer underWay.Wait()
	for i := range parts {
		if i > 0 {
			if !transfer.WaitToFill(t.Context(), t.Context()) {
				t.Error("no part may be filled")
				return
			}
			fill()
		}
		if !transfer.Acquire(t.Context(), t.Context()) {
			t.Error("no part may be sent")
			return
		}
		begin := time.Now()
		underWay.Go(func() {
			s.store(size)
			transfer.ReleasePart(begin, size)
			s.memory(-1)
		})
	}
}

// memory counts parts that are filled or under way.
func (s *partServer) memory(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += n
	s.mostHeld = max(s.mostHeld, s.held)
}

func TestUploads(t *testing.T) {
	const mib = 1 << 20
	const latency, near = 40 * time.Millisecond, 15 * time.Millisecond
	for _, test := range []struct {
		label                      string
		connection, server, client float64
		latency                    time.Duration
		uploads, parts             int // parts of each
		least, most                int // parts under way at the most
		held                       int // parts in memory at the most
		within                     time.Duration
	}{
		{"distant-server", 25 * mib, 10_000 * mib, 800 * mib, latency, 1, 52, 16, 16, 20, time.Second},
		{"slow-client", 25 * mib, 10_000 * mib, 10 * mib, latency, 1, 50, 1, 1, 3, 26 * time.Second},
		{"client-a-little-faster", 25 * mib, 10_000 * mib, 30 * mib, latency, 1, 50, 2, 2, 6, 9 * time.Second},
		{"client-of-four-parts", 25 * mib, 10_000 * mib, 80 * mib, latency, 1, 100, 4, 4, 8, 7 * time.Second},
		{"distant-server-that-has-no-more-than-four", 25 * mib, 100 * mib, 800 * mib, latency, 1, 400, 16, 16, 20,
			22 * time.Second},
		{"near-server", 400 * mib, 400 * mib, 800 * mib, time.Millisecond, 1, 200, 2, 4, 7, 3 * time.Second},
		{"near-server-of-slow-connections", 25 * mib, 10_000 * mib, 800 * mib, near, 1, 52, 16, 16, 20,
			1600 * time.Millisecond},
		{"near-server-and-slow-client", 25 * mib, 10_000 * mib, 10 * mib, near, 1, 50, 1, 1, 3, 26 * time.Second},
		{"near-server-and-client-of-four-parts", 25 * mib, 10_000 * mib, 80 * mib, near, 1, 100, 4, 5, 8,
			7 * time.Second},
		{"near-server-that-has-no-more-than-four", 25 * mib, 100 * mib, 800 * mib, near, 1, 200, 4, 8, 20,
			12 * time.Second},
		{"eight-before-a-near-server", 400 * mib, 400 * mib, 800 * mib, time.Millisecond, 8, 26, 8, 16, 18,
			3 * time.Second},
		{"eight-before-a-distant-server", 25 * mib, 10_000 * mib, 800 * mib, latency, 8, 100, 20, 128, 140,
			5 * time.Second},
		{"three-before-a-distant-server", 25 * mib, 10_000 * mib, 800 * mib, latency, 3, 100, 20, 48, 130,
			4 * time.Second},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &partServer{connection: test.connection, server: test.server, latency: test.latency}
				begin := time.Now()
				l := newLimiter(test.latency)
				var uploads sync.WaitGroup
				for range test.uploads {
					uploads.Go(func() { server.upload(t, l, test.client, test.parts) })
				}
				uploads.Wait()
				took := time.Since(begin)
				t.Logf("most %d, held %d, took %v", server.most, server.mostHeld, took)
				if server.most < test.least || server.most > test.most {
					t.Errorf("up to %d parts are under way, want %d to %d", server.most, test.least, test.most)
				}
				if server.mostHeld > test.held {
					t.Errorf("up to %d parts were in memory, want %d", server.mostHeld, test.held)
				}
				if took > test.within {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestLimitRemembered checks that an upload goes by what others have found out, and finds it out again when that is
// long ago.
func TestLimitRemembered(t *testing.T) {
	const mib = 1 << 20
	synctest.Test(t, func(t *testing.T) {
		server := &partServer{connection: 25 * mib, server: 10_000 * mib, latency: 15 * time.Millisecond}
		l := newLimiter(server.latency)
		upload := func() time.Duration {
			begin := time.Now()
			server.upload(t, l, 800*mib, 52)
			return time.Since(begin)
		}
		first, second := upload(), upload()
		if second > first*3/4 {
			t.Errorf("the first upload took %v, and the second %v", first, second)
		}
		time.Sleep(maxAge + time.Second)
		server.connection, server.server, server.latency = 400*mib, 400*mib, time.Millisecond
		l.stats.Observe(time.Now(), server.latency)
		server.most = 0
		upload()
		if server.most > 4 {
			t.Errorf("up to %d parts are under way to a server that has come near", server.most)
		}
	})
}

// TestCorrection checks that a limit which was guessed for a distant server ends when one of its answers comes soon.
func TestCorrection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(time.Second)
		s := l.Join(16)
		if l.limit != 16 {
			t.Fatalf("the limit is %d", l.limit)
		}
		begin := time.Now()
		for range 3 {
			if !s.Acquire(t.Context(), t.Context()) {
				t.Fatal("no part may be sent")
			}
		}
		time.Sleep(s3api.FarAway)
		s.ReleasePart(begin, 5<<20)
		if l.limit != 16 {
			t.Errorf("the limit is %d after a slow answer", l.limit)
		}
		s.ReleasePart(time.Now().Add(-s3api.FarAway/2), 5<<20)
		if l.limit > 2 {
			t.Errorf("the limit is %d after a fast answer", l.limit)
		}
		s.ReleasePart(time.Now(), 5<<20)
	})
}

// TestLimiterIsFair checks that an upload with many parts under way keeps none waiting that begins, and has no more
// than its turn from then on.
func TestLimiterIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(&s3api.Stats{})
		greedy, modest := l.Join(16), l.Join(16)
		l.set(4)
		take := func(s *Transfer, n int, sent chan<- *Transfer) {
			for range n {
				if s.Acquire(t.Context(), t.Context()) {
					sent <- s
				}
			}
		}
		sent := make(chan *Transfer, 100)
		go take(greedy, 10, sent)
		synctest.Wait()
		if len(sent) != 4 {
			t.Fatalf("%d parts are under way", len(sent))
		}
		go take(modest, 10, sent)
		synctest.Wait()
		if len(sent) != 5 {
			t.Fatalf("%d parts are under way, want one more", len(sent))
		}
		for range 8 {
			(<-sent).ReleasePart(time.Now(), 0)
			synctest.Wait()
		}
		if len(greedy.slots) == 0 || len(modest.slots) < 2 {
			t.Errorf("%d parts of one are under way, and %d of the other", len(greedy.slots), len(modest.slots))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if greedy.Acquire(ctx, t.Context()) {
			t.Error("a slot was free for a part of an upload that had ended")
		}
		for l.used > 0 {
			(<-sent).ReleasePart(time.Now(), 0)
			synctest.Wait()
		}
		if l.active != 0 {
			t.Errorf("at the end %d uploads have parts", l.active)
		}
	})
}

// TestShrunkLimit checks that an upload which begins has a part under way, though others have more than the limit
// allows by now.
func TestShrunkLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where one that waits would end the test
		l := NewLimiter(&s3api.Stats{})
		greedy, modest := l.Join(16), l.Join(16)
		l.set(16)
		for range 16 {
			greedy.Acquire(t.Context(), t.Context())
		}
		l.set(1)
		if !modest.Acquire(t.Context(), t.Context()) {
			t.Error("no part may be sent")
		}
		for label, s := range map[string]*Transfer{"greedy": greedy, "modest": modest} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if s.Acquire(ctx, ctx) {
				t.Errorf("another part of the %s upload may be sent", label)
			}
			cancel()
		}
	})
}

// TestGivenUpWhenGranted lets uploads give up in the moment in which their turn comes: the limiter gets each slot back.
func TestGivenUpWhenGranted(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		label      string
		ctx, until context.Context
	}{
		{"failed-upload", ended, t.Context()},
		{"closed-upload", t.Context(), ended},
	} {
		t.Run(test.label, func(t *testing.T) {
			l := newLimiter(time.Second)
			s := l.Join(16)
			for range 100 { // select picks one of two that are ready
				if s.Acquire(test.ctx, test.until) {
					s.ReleasePart(time.Now(), 0)
				}
				if l.used != 0 || len(s.slots) != 0 || l.active != 0 {
					t.Fatalf("%d parts of %d uploads are under way, want none", l.used, l.active)
				}
			}
			if !s.Acquire(t.Context(), t.Context()) {
				t.Fatal("no part may be sent")
			}
			for range 100 { // a part of its own is under way, so the limiter counts those that are filled ahead
				if s.WaitToFill(test.ctx, test.until) || s.ahead != nil {
					t.Fatal("an upload that has ended fills a part ahead")
				}
			}
			s.ReleasePart(time.Now(), 0)
			if l.used != 0 || l.active != 0 {
				t.Errorf("%d parts of %d uploads are under way at the end", l.used, l.active)
			}
		})
	}
}
