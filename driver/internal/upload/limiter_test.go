package upload

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A partServer simulates an S3 server with a limited bandwidth, in bytes per second: of each connection, and in total.
type partServer struct {
	connection, total float64
	latency           time.Duration

	mu          sync.Mutex
	inFlight    int // parts
	maxInFlight int
	held        int // parts in the memory of the client
	maxHeld     int

	// All connections receive at the same speed.
	received float64 // bytes per connection until since
	since    time.Time
	changed  chan struct{} // closed when inFlight changes
}

// store receives a part.
func (s *partServer) store(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(1)
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
	s.count(-1)
}

// count changes the number of parts in flight.
func (s *partServer) count(n int) {
	s.progress()
	s.inFlight += n
	s.maxInFlight = max(s.maxInFlight, s.inFlight)
	if s.changed != nil {
		close(s.changed)
	}
	s.changed = make(chan struct{})
}

// progress updates and returns the number of bytes that each connection has received.
func (s *partServer) progress() float64 {
	now := time.Now()
	if s.inFlight > 0 {
		s.received += s.speed() * now.Sub(s.since).Seconds()
	}
	s.since = now
	return s.received
}

// speed returns the current bytes per second of each connection.
func (s *partServer) speed() float64 { return min(s.connection, s.total/float64(s.inFlight)) }

// upload sends parts that a client fills with the given number of bytes per second.
func (s *partServer) upload(t *testing.T, l *Limiter, client float64, parts int) {
	const size = 5 << 20
	slots := l.join()
	var inFlight sync.WaitGroup
	defer inFlight.Wait()
	for range parts {
		if !slots.acquire(t.Context(), t.Context()) {
			t.Error("no slot for the next part")
			return
		}
		s.memory(1)
		time.Sleep(time.Duration(size / client * float64(time.Second)))
		inFlight.Go(func() {
			s.store(size)
			s.memory(-1)
			slots.release()
		})
	}
}

// memory counts the parts in memory.
func (s *partServer) memory(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held += n
	s.maxHeld = max(s.maxHeld, s.held)
}

func near(time.Time) bool { return false }
func far(time.Time) bool  { return true }

func TestUploads(t *testing.T) {
	const mib = 1 << 20
	const latency = 40 * time.Millisecond
	for _, test := range []struct {
		label                     string
		far                       func(time.Time) bool
		connection, total, client float64 // bytes per second
		latency                   time.Duration
		uploads, parts            int // number of uploads, and of parts of each
		minInFlight, maxInFlight  int // bounds of the highest number of parts in flight
		maxHeld                   int // parts in memory
		maxTime                   time.Duration
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
				server := &partServer{connection: test.connection, total: test.total, latency: test.latency}
				begin := time.Now()
				l := NewLimiter(test.far)
				var uploads sync.WaitGroup
				for range test.uploads {
					uploads.Go(func() { server.upload(t, l, test.client, test.parts) })
				}
				uploads.Wait()
				took := time.Since(begin)
				t.Logf("%d in flight, %d in memory, %v", server.maxInFlight, server.maxHeld, took)
				if n := server.maxInFlight; n < test.minInFlight || n > test.maxInFlight {
					t.Errorf("up to %d parts in flight, want %d to %d", n, test.minInFlight, test.maxInFlight)
				}
				if server.maxHeld > test.maxHeld {
					t.Errorf("up to %d parts in memory, want at most %d", server.maxHeld, test.maxHeld)
				}
				if took > test.maxTime {
					t.Errorf("took %v, want at most %v", took, test.maxTime)
				}
				if len(l.shared) != 0 {
					t.Errorf("%d shared slots are in use at the end", len(l.shared))
				}
			})
		})
	}
}

// TestFirstPartNeedNotWait checks that an upload may begin its first part while others use all shared slots, and that
// waiting uploads get released slots in the order of their arrival.
func TestFirstPartNeedNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(near)
		greedy, modest := l.join(), l.join()
		for range 1 + nearParts {
			if !greedy.acquire(t.Context(), t.Context()) {
				t.Fatal("no slot for the only upload")
			}
		}
		if !modest.acquire(t.Context(), t.Context()) {
			t.Fatal("no slot for the first part of an upload")
		}
		order := make(chan string, 2)
		for name, s := range map[string]*slots{"modest": modest, "greedy": greedy} {
			go func() {
				if name == "greedy" {
					time.Sleep(time.Second)
				}
				if s.acquire(t.Context(), t.Context()) {
					order <- name
				}
			}()
		}
		time.Sleep(2 * time.Second)
		if len(order) != 0 {
			t.Fatalf("the %s upload did not wait", <-order)
		}
		for _, want := range []string{"modest", "greedy"} {
			greedy.release()
			synctest.Wait()
			if len(order) != 1 || <-order != want {
				t.Errorf("the %s upload still waits", want)
			}
		}
	})
}

// TestEndedUpload checks that all shared slots are available again after an upload has ended while it waited for a slot
// or had reserved one.
func TestEndedUpload(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l := NewLimiter(near)
	for label, contexts := range map[string][2]context.Context{
		"failed-upload": {ended, t.Context()}, "closed-upload": {t.Context(), ended},
	} {
		t.Run(label, func(t *testing.T) {
			for range 100 { // select chooses at random if several cases are ready
				s := l.join()
				for range 1 + nearParts {
					if !s.acquire(t.Context(), t.Context()) {
						t.Fatal("no slot is free")
					}
				}
				if s.acquire(contexts[0], contexts[1]) {
					t.Fatal("an upload has more slots than exist")
				}
				s.release()
				acquired := nearParts
				if s.acquire(contexts[0], contexts[1]) {
					acquired++
				}
				for ; acquired > 1; acquired-- { // the last one is reserved for a part that never begins
					s.release()
				}
				if len(l.shared) != 0 {
					t.Fatalf("%d shared slots are in use, want none", len(l.shared))
				}
			}
		})
	}
}
