package schedule

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestGiveUp checks that who gives up leaves the queue at once, and takes no turn from others.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0)
		first, err := q.Enter(t.Context(), Key{Member: "a"})
		must.OK(t, err)
		ctx, hangUp := context.WithCancel(t.Context())
		for range 200 {
			go func() {
				if _, err := q.Enter(ctx, Key{Member: "c"}); !errors.Is(err, context.Canceled) {
					t.Errorf("after the client has hung up: %v", err)
				}
			}()
		}
		turns := 0
		go func() {
			slot, err := q.Enter(t.Context(), Key{Member: "b"})
			if err != nil {
				t.Error(err)
				return
			}
			turns++
			slot.Leave()
		}()
		synctest.Wait()
		hangUp()
		synctest.Wait()
		if waits := q.all.waits; waits != 1 {
			t.Errorf("%d clients wait, want one", waits)
		}
		first.Leave()
		synctest.Wait()
		if turns != 1 {
			t.Errorf("%d turns of who stayed", turns)
		}
		q.checkEmpty(t)
	})
}

// checkEmpty checks that no member has a slot or waits for one.
func (q *Queue) checkEmpty(t *testing.T) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if all := &q.all; all.requests() != 0 || all.busy != 0 || len(all.below) != 0 || len(all.next) != 0 {
		t.Errorf("at the end %d slots are taken, %d requests wait, %d groups are known", all.used, all.waits, len(all.below))
	}
}

// BenchmarkRelease gives a slot back while 10,000 users wait, which the next one gets, and asks for another.
func BenchmarkRelease(b *testing.B) {
	const users = 10_000
	for _, tenants := range []int{1, 100, users / 2} {
		b.Run(fmt.Sprintf("%d-tenants", tenants), func(b *testing.B) {
			q := NewQueue(10, 1)
			keys := make(map[*node]Key)
			var taken []*Slot
			ask := func(key Key) {
				q.mu.Lock()
				defer q.mu.Unlock()
				s := q.join(key)
				keys[s.member] = key
				taken = append(taken, s)
			}
			for i := range users {
				ask(Key{fmt.Sprint(i % tenants), fmt.Sprint(i)})
			}
			for n := 0; b.Loop(); n++ {
				s := taken[n]
				if s.waiting != nil {
					b.Fatalf("user %s has no slot after %d", s.member.name, n)
				}
				s.Leave()
				ask(keys[s.member])
			}
		})
	}
}

// BenchmarkWaitAndGiveUp lets a request of a user come and give up while 10,000 of the user wait.
func BenchmarkWaitAndGiveUp(b *testing.B) {
	q := NewQueue(1, 0)
	key := Key{"acme", "alice"}
	for range 10_000 {
		q.join(key)
	}
	gone, cancel := context.WithCancel(b.Context())
	cancel()
	for b.Loop() {
		if _, err := q.Enter(gone, key); err == nil {
			b.Fatal("there is a slot")
		}
	}
}
