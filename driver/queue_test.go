package driver

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
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
}

// store takes a part.
func (s *partServer) store(bytes int64) {
	const step = 100 * time.Microsecond
	s.enter(1)
	time.Sleep(s.latency)
	for left := float64(bytes); left > 0; {
		time.Sleep(step)
		left -= min(s.connection, s.server/float64(s.enter(0))) * step.Seconds()
	}
	s.enter(-1)
}

func (s *partServer) enter(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay += n
	s.most = max(s.most, s.underWay)
	return s.underWay
}

// upload sends parts that a client fills at a speed.
func (s *partServer) upload(t *testing.T, q *queue, client float64, parts int) {
	const size = 5 << 20
	fill := func() {
		s.memory(1)
		time.Sleep(time.Duration(size / client * float64(time.Second)))
	}
	fill()
	route := NewRoute()
	route.Answered(s.latency)
	sender := q.sender(16, route.guess(time.Now(), 16))
	defer sender.close()
	var underWay sync.WaitGroup
	defer underWay.Wait()
	for i := range parts {
		if i > 0 {
			if !sender.mayFill(t.Context(), t.Context()) {
				t.Error("no part may be filled")
				return
			}
			fill()
		}
		if !sender.take(t.Context(), t.Context()) {
			t.Error("no part may be sent")
			return
		}
		begin := time.Now()
		underWay.Go(func() {
			s.store(size)
			sender.leave(begin, size)
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

func TestQueue(t *testing.T) {
	const mib = 1 << 20
	const latency, near = 40 * time.Millisecond, 15 * time.Millisecond
	for _, test := range []struct {
		label                      string
		connection, server, client float64
		latency                    time.Duration
		uploads, parts             int // parts of each
		least, most                int // width at the end
		held                       int // parts in memory at the most
		within                     time.Duration
	}{
		{"distant-server", 25 * mib, 10_000 * mib, 800 * mib, latency, 1, 52, 16, 16, 20, time.Second},
		{"slow-client", 25 * mib, 10_000 * mib, 10 * mib, latency, 1, 50, 16, 16, 3, 26 * time.Second},
		{"client-a-little-faster", 25 * mib, 10_000 * mib, 30 * mib, latency, 1, 50, 16, 16, 6, 9 * time.Second},
		{"client-of-four-parts", 25 * mib, 10_000 * mib, 80 * mib, latency, 1, 100, 16, 16, 8, 7 * time.Second},
		{"distant-server-that-has-no-more-than-four", 25 * mib, 100 * mib, 800 * mib, latency, 1, 400, 4, 4, 20, 22 * time.Second},
		{"near-server", 400 * mib, 400 * mib, 800 * mib, time.Millisecond, 1, 200, 1, 1, 7, 3 * time.Second},
		{"near-server-of-slow-connections", 25 * mib, 10_000 * mib, 800 * mib, near, 1, 52, 16, 16, 20, 1600 * time.Millisecond},
		{"near-server-and-slow-client", 25 * mib, 10_000 * mib, 10 * mib, near, 1, 50, 1, 1, 3, 26 * time.Second},
		{"near-server-and-client-of-four-parts", 25 * mib, 10_000 * mib, 80 * mib, near, 1, 100, 4, 5, 8, 7 * time.Second},
		{"near-server-that-has-no-more-than-four", 25 * mib, 100 * mib, 800 * mib, near, 1, 200, 4, 4, 20, 12 * time.Second},
		{"eight-before-a-near-server", 400 * mib, 400 * mib, 800 * mib, time.Millisecond, 8, 26, 1, 1, 18, 3 * time.Second},
		{"eight-before-a-distant-server", 25 * mib, 10_000 * mib, 800 * mib, latency, 8, 100, 20, 200, 140, 5 * time.Second},
		{"three-before-a-distant-server", 25 * mib, 10_000 * mib, 800 * mib, latency, 3, 100, 20, 200, 130, 4 * time.Second},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &partServer{connection: test.connection, server: test.server, latency: test.latency}
				begin := time.Now()
				var q queue
				var uploads sync.WaitGroup
				for range test.uploads {
					uploads.Go(func() { server.upload(t, &q, test.client, test.parts) })
				}
				uploads.Wait()
				took := time.Since(begin)
				width := q.pace.width
				t.Logf("width %d, most %d, held %d, took %v", width, server.most, server.mostHeld, took)
				if width < test.least || width > test.most {
					t.Errorf("width is %d, want %d to %d", width, test.least, test.most)
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

// TestQueueRemembers checks that an upload goes by what others have found out, and finds it out again when that is long ago.
func TestQueueRemembers(t *testing.T) {
	const mib = 1 << 20
	synctest.Test(t, func(t *testing.T) {
		server := &partServer{connection: 25 * mib, server: 10_000 * mib, latency: 15 * time.Millisecond}
		var q queue
		upload := func() time.Duration {
			begin := time.Now()
			server.upload(t, &q, 800*mib, 52)
			return time.Since(begin)
		}
		first, second := upload(), upload()
		if second > first*3/4 {
			t.Errorf("the first upload took %v, and the second %v", first, second)
		}
		time.Sleep(endpoint.MaxBackoff + time.Second)
		server.connection, server.server, server.latency = 400*mib, 400*mib, time.Millisecond
		upload()
		if q.pace.width != 1 {
			t.Errorf("width is %d before a server that has come near", q.pace.width)
		}
	})
}

// TestQueueCorrects checks that no more is guessed of a server that seemed far away when one of its answers comes soon.
func TestQueueCorrects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q queue
		s := q.sender(16, 16)
		defer s.close()
		if q.pace.width != 16 {
			t.Fatalf("width is %d", q.pace.width)
		}
		begin := time.Now()
		for range 3 {
			if !s.take(t.Context(), t.Context()) {
				t.Fatal("no part may be sent")
			}
		}
		time.Sleep(endpoint.FarAway)
		s.leave(begin, s3api.MinPartSize)
		if q.pace.width != 16 {
			t.Errorf("width is %d after a slow answer", q.pace.width)
		}
		s.leave(time.Now(), s3api.MinPartSize)
		if q.pace.width != 1 {
			t.Errorf("width is %d after a fast answer", q.pace.width)
		}
		s.leave(time.Now(), s3api.MinPartSize)
	})
}

// TestQueueTakesTurns checks that an upload with many parts under way keeps none waiting that begins, and has no more than its turn
// from then on.
func TestQueueTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue{}
		greedy, modest := q.sender(16, 1), q.sender(16, 1)
		q.pace.width = 4
		take := func(s *sender, n int, sent chan<- *sender) {
			for range n {
				if s.take(t.Context(), t.Context()) {
					sent <- s
				}
			}
		}
		sent := make(chan *sender, 100)
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
			(<-sent).leave(time.Now(), 0)
			synctest.Wait()
		}
		if greedy.parts == 0 || modest.parts < 2 {
			t.Errorf("%d parts of one are under way, and %d of the other", greedy.parts, modest.parts)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if greedy.take(ctx, t.Context()) && greedy.parts > 1 && q.inUse() > q.pace.width {
			t.Error("a part was taken for one that nobody waits for")
		}
		for greedy.parts+modest.parts > 0 {
			(<-sent).leave(time.Now(), 0)
			synctest.Wait()
		}
		if len(q.waiting) != 0 || q.parts != 0 || q.senders != 0 || q.ahead != 0 {
			t.Errorf("at the end %+v", q.waiting)
		}
	})
}

// TestQueueGivenUpWhenGranted lets uploads give up in the moment in which their turn comes: the queue gets each slot back.
func TestQueueGivenUpWhenGranted(t *testing.T) {
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
			var q queue
			s := q.sender(16, 16)
			for range 100 { // select picks one of two that are ready
				if s.take(test.ctx, test.until) {
					s.leave(time.Now(), 0)
				}
				if q.parts != 0 || s.parts != 0 || q.senders != 0 {
					t.Fatalf("%d parts of %d uploads are under way, want none", q.parts, q.senders)
				}
			}
			if !s.take(t.Context(), t.Context()) {
				t.Fatal("no part may be sent")
			}
			for range 100 { // a part of its own is under way, so the queue counts those that are filled ahead
				if s.mayFill(test.ctx, test.until) {
					s.setAhead(false)
				}
				if q.ahead != 0 {
					t.Fatalf("%d uploads fill a part ahead, want none", q.ahead)
				}
			}
			s.leave(time.Now(), 0)
			if q.parts != 0 || q.senders != 0 {
				t.Errorf("%d parts of %d uploads are under way at the end", q.parts, q.senders)
			}
		})
	}
}
