package schedule

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestOrder checks that turns go round those who wait, and not round their requests.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0)
		first, err := q.Enter(t.Context(), Key{Member: "a"})
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, name := range strings.Fields("a a a a b a c b") {
			go func() {
				slot, err := q.Enter(t.Context(), Key{Member: name})
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, name) // by the one that has entered
				slot.Leave()
			}()
			synctest.Wait()
		}
		first.Leave()
		synctest.Wait()
		if got, want := strings.Join(order, " "), "a b c a b a a a"; got != want {
			t.Errorf("turns are %s, want %s", got, want)
		}
		q.checkEmpty(t)
	})
}

// TestQueueGiveUp checks that who gives up leaves the queue at once, and takes no turn from others.
func TestQueueGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(1, 0)
		first, err := q.Enter(t.Context(), Key{Member: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, hangUp := context.WithCancel(t.Context())
		for range 200 {
			go func() {
				if _, err := q.Enter(ctx, Key{Member: "a"}); !errors.Is(err, context.Canceled) {
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

// mayBeNext returns the groups in which someone waits who does not rest, or such members of a group, in order.
func (n *node) mayBeNext() (all []*node) {
	for _, below := range n.below {
		if !below.resting && below.waits > 0 && (below.below == nil || len(below.mayBeNext()) > 0) {
			all = append(all, below)
		}
	}
	slices.SortFunc(all, (*node).compare)
	return all
}

// looked returns who may have a slot next, by a look at everyone.
func (q *Queue) looked() *node {
	for _, group := range q.all.mayBeNext() {
		for _, member := range group.mayBeNext() {
			free := q.slots - q.all.used
			busy, others := 0, 0
			for _, g := range q.all.below {
				if g.used > 0 {
					busy++
				}
			}
			for _, m := range group.below {
				if m.used > 0 {
					others++
				}
			}
			alone := group.used == q.all.used
			switch {
			case free > q.kept,
				q.kept > 0 && group.used == 0 && busy < q.slots,
				q.kept > 0 && group.used > 0 && alone && member.used == 0 && others < q.slots:
				return member
			}
		}
	}
	return nil
}

// TestNext lets random members ask for slots, leave, rest and give up in a queue of random sizes. Who gets a slot is
// the first who may have it.
func TestNext(t *testing.T) {
	given := 0
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			q := NewQueue(1+random.IntN(4), random.IntN(2))
			groups, members := 1+random.IntN(6), 1+random.IntN(6)
			var taken, waiting []*Slot
			for range 300 {
				q.mu.Lock()
				slots, kept := q.slots, q.kept
				q.slots, q.kept = 0, 0 // no member gets one yet
				switch n := random.IntN(9); {
				case n < 4:
					for range 1 + random.IntN(4) {
						waiting = append(waiting, q.join(
							Key{fmt.Sprint(random.IntN(groups)), fmt.Sprint(random.IntN(members))}))
					}
				case n < 6 && len(taken) > 0:
					i := random.IntN(len(taken))
					s := taken[i]
					taken = slices.Delete(taken, i, i+1)
					q.mu.Unlock()
					s.LeaveAndRest(time.Duration(random.IntN(3)) * work)
					q.mu.Lock()
				case n == 6:
					slots = 1 + random.IntN(20)
				case n == 7:
					q.mu.Unlock()
					time.Sleep(time.Duration(random.IntN(3)) * work)
					synctest.Wait()
					q.mu.Lock()
				case n == 8 && len(waiting) > 0:
					i := random.IntN(len(waiting))
					q.leave(waiting[i])
					q.forget(waiting[i].member)
					waiting = slices.Delete(waiting, i, i+1)
				}
				q.slots, q.kept = slots, kept
				for want := q.looked(); want != nil; want = q.looked() {
					before := want.used
					q.serveOne()
					if want.used != before+1 {
						t.Fatalf("seed %d: %s of %s has no slot", seed, want.name, want.above.name)
					}
					given++
				}
				used := q.all.used
				if q.serve(); q.all.used != used {
					t.Fatalf("seed %d: someone has a slot who may not", seed)
				}
				q.mu.Unlock()
				waiting = slices.DeleteFunc(waiting, func(s *Slot) bool {
					if s.waiting == nil {
						taken = append(taken, s)
					}
					return s.waiting == nil
				})
			}
			q.mu.Lock()
			for _, s := range waiting {
				q.leave(s)
				q.forget(s.member)
			}
			q.mu.Unlock()
			for _, s := range taken {
				s.Leave()
			}
			q.checkEmpty(t)
		})
	}
	if given < 2000 {
		t.Errorf("only %d slots were given", given)
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
