package schedule

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestCanceledRequests checks that canceled requests leave the queue immediately and do not delay others.
func TestCanceledRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0)
		first, err := q.Acquire(t.Context(), Key{Member: "a"})
		must.OK(t, err)
		ctx, hangUp := context.WithCancel(t.Context())
		for range 200 {
			go func() {
				if _, err := q.Acquire(ctx, Key{Member: "c"}); !errors.Is(err, context.Canceled) {
					t.Errorf("after the client disconnected: %v", err)
				}
			}()
		}
		granted := 0
		go func() {
			slot, err := q.Acquire(t.Context(), Key{Member: "b"})
			if err != nil {
				t.Error(err)
				return
			}
			granted++
			slot.Release()
		}()
		synctest.Wait()
		hangUp()
		synctest.Wait()
		if waits := q.root.waits; waits != 1 {
			t.Errorf("%d requests wait, want 1", waits)
		}
		first.Release()
		synctest.Wait()
		if granted != 1 {
			t.Errorf("the remaining request got %d slots, want 1", granted)
		}
		q.checkEmpty(t)
	})
}

// checkEmpty checks that no slots are in use and no requests wait.
func (q *Queue) checkEmpty(t *testing.T) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if r := &q.root; r.requests() != 0 || r.busy != 0 || len(r.children) != 0 || len(r.next) != 0 {
		t.Errorf("at the end: %d slots in use, %d waiting requests, %d groups", r.used, r.waits, len(r.children))
	}
}

// BenchmarkRelease measures a release and a new request while 10,000 users wait.
func BenchmarkRelease(b *testing.B) {
	const users = 10_000
	for _, tenants := range []int{1, 100, users / 2} {
		b.Run(fmt.Sprintf("%d-tenants", tenants), func(b *testing.B) {
			q := NewQueue(10, 1)
			keys := make(map[*node]Key)
			var taken []*Slot
			request := func(key Key) {
				q.mu.Lock()
				defer q.mu.Unlock()
				s := q.request(key)
				keys[s.member] = key
				taken = append(taken, s)
			}
			for i := range users {
				request(Key{fmt.Sprint(i % tenants), fmt.Sprint(i)})
			}
			for n := 0; b.Loop(); n++ {
				s := taken[n]
				if s.waiting != nil {
					b.Fatalf("user %s has no slot after %d", s.member.name, n)
				}
				s.Release()
				request(keys[s.member])
			}
		})
	}
}

// BenchmarkCanceledRequest measures a canceled request while 10,000 requests of the same user wait.
func BenchmarkCanceledRequest(b *testing.B) {
	q := NewQueue(1, 0)
	key := Key{"acme", "alice"}
	for range 10_000 {
		q.request(key)
	}
	gone, cancel := context.WithCancel(b.Context())
	cancel()
	for b.Loop() {
		if _, err := q.Acquire(gone, key); err == nil {
			b.Fatal("got a slot although all are in use")
		}
	}
}
