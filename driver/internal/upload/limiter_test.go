package upload

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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

// upload sends parts that a client fills at a speed.
func (s *partServer) upload(t *testing.T, l *Limiter, client float64, parts int) {
	const size = 5 << 20
	slots := l.join()
	var underWay sync.WaitGroup
	defer underWay.Wait()
	for range parts {
		if !slots.take(t.Context(), t.Context()) {
			t.Error("no part may be filled")
			return
		}
		s.memory(1)
		time.Sleep(time.Duration(size / client * float64(time.Second)))
		underWay.Go(func() {
			s.store(size)
			s.memory(-1)
			slots.leave()
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

func near(time.Time) bool { return false }
func far(time.Time) bool  { return true }

func TestUploads(t *testing.T) {
	const mib = 1 << 20
	const latency = 40 * time.Millisecond
	for _, test := range []struct {
		label                      string
		far                        func(time.Time) bool
		connection, server, client float64
		latency                    time.Duration
		uploads, parts             int // parts of each
		least, most                int // parts under way at the most
		held                       int // parts in memory at the most
		within                     time.Duration
	}{
		{"distant-server", far, 25 * mib, 10_000 * mib, 800 * mib, latency, 1, 52, 20, 20, 20, time.Second},
		{"slow-client", far, 25 * mib, 10_000 * mib, 10 * mib, latency, 1, 50, 1, 1, 2, 26 * time.Second},
		{"client-of-four-parts", far, 25 * mib, 10_000 * mib, 80 * mib, latency, 1, 100, 4, 4, 5, 7 * time.Second},
		{"eight-before-a-distant-server", far, 25 * mib, 10_000 * mib, 800 * mib, latency, 8, 100, 160, 160, 160,
			2 * time.Second},
		{"near-server", near, 400 * mib, 400 * mib, 800 * mib, time.Millisecond, 1, 200, 4, 7, 7, 3 * time.Second},
		{"near-server-of-slow-connections", near, 25 * mib, 10_000 * mib, 800 * mib, 15 * time.Millisecond, 1, 50, 7, 7,
			7, 3 * time.Second},
		{"near-server-and-slow-client", near, 25 * mib, 10_000 * mib, 10 * mib, time.Millisecond, 1, 50, 1, 1, 2,
			26 * time.Second},
		{"eight-before-a-near-server", near, 400 * mib, 400 * mib, 800 * mib, time.Millisecond, 8, 26, 8, 14, 14,
			3 * time.Second},
		{"eight-slow-clients-of-a-near-server", near, 400 * mib, 400 * mib, 10 * mib, time.Millisecond, 8, 10, 1, 8, 14,
			6 * time.Second},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &partServer{connection: test.connection, server: test.server, latency: test.latency}
				begin := time.Now()
				l := NewLimiter(test.far)
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
					t.Errorf("it took %v, want %v", took, test.within)
				}
				if len(l.shared) != 0 {
					t.Errorf("%d shared slots are in use at the end", len(l.shared))
				}
			})
		})
	}
}

// TestFirstPartNeedNotWait checks that an upload may begin a part while others use all shared slots, and that uploads
// which wait for more get the next ones in turn.
func TestFirstPartNeedNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(near)
		greedy, modest := l.join(), l.join()
		for range 1 + nearParts {
			if !greedy.take(t.Context(), t.Context()) {
				t.Fatal("no slot for an upload that is alone")
			}
		}
		if !modest.take(t.Context(), t.Context()) {
			t.Fatal("no slot for the first part of an upload")
		}
		order := make(chan string, 2)
		for name, s := range map[string]*slots{"modest": modest, "greedy": greedy} {
			go func() {
				if name == "greedy" {
					time.Sleep(time.Second)
				}
				if s.take(t.Context(), t.Context()) {
					order <- name
				}
			}()
		}
		time.Sleep(2 * time.Second)
		if len(order) != 0 {
			t.Fatalf("the %s upload did not wait", <-order)
		}
		for _, want := range []string{"modest", "greedy"} {
			greedy.leave()
			synctest.Wait()
			if len(order) != 1 || <-order != want {
				t.Errorf("the %s upload still waits", want)
			}
		}
	})
}

// TestEndedUpload ends uploads that wait for a slot, or that have reserved one: other uploads get all shared slots.
func TestEndedUpload(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l := NewLimiter(near)
	for label, contexts := range map[string][2]context.Context{
		"failed-upload": {ended, t.Context()}, "closed-upload": {t.Context(), ended},
	} {
		t.Run(label, func(t *testing.T) {
			for range 100 { // select picks one of two that are ready
				s := l.join()
				for range 1 + nearParts {
					if !s.take(t.Context(), t.Context()) {
						t.Fatal("no slot is free")
					}
				}
				if s.take(contexts[0], contexts[1]) {
					t.Fatal("an upload has more slots than there are")
				}
				s.leave()
				taken := nearParts
				if s.take(contexts[0], contexts[1]) {
					taken++
				}
				for ; taken > 1; taken-- { // the last one is reserved for a part that never begins
					s.leave()
				}
				if len(l.shared) != 0 {
					t.Fatalf("%d shared slots are in use, want none", len(l.shared))
				}
			}
		})
	}
}
