package membudget

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// look serves as [memory.serve] does, by a look at each buffer that waits. It returns those that still do.
func (m *memory) look(waiting []*waiter) []*waiter {
	m.round++
	m.starved = nil
	slices.SortStableFunc(waiting, func(a, b *waiter) int {
		return cmp.Or(
			cmp.Compare(a.ofGroup(), b.ofGroup()), cmp.Compare(a.ofMember(), b.ofMember()),
			cmp.Compare(a.arrival, b.arrival))
	})
	return slices.DeleteFunc(waiting, func(r *waiter) bool {
		if p := r.refusedBy(m.round); p != nil {
			if p == m.all && m.starved == nil {
				m.starved = r
			}
			return false
		}
		r.buffer.hold(r.bytes)
		close(r.ready)
		return true
	})
}

func (r *waiter) ofMember() int64 { return r.buffer.budget.pools[0].held() }
func (r *waiter) ofGroup() int64 {
	pools := r.buffer.budget.pools
	return pools[min(1, len(pools)-1)].held()
}

// TestQueue lets random buffers of two budgets want, fill and return memory. The queue of the one serves those that a
// look at all serves in the other.
func TestQueue(t *testing.T) {
	const buffers = 40
	granted, waited := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		limit := MinLimit + random.Int64N(20<<20)
		queued, looked := New(limit), New(limit)
		var budgets [2][]*Budget
		for i, b := range []*Budget{queued, looked} {
			for c := range 9 {
				budgets[i] = append(budgets[i], b.For(fmt.Sprint(c/3), fmt.Sprint(c%3)))
			}
			budgets[i] = append(budgets[i], b)
		}
		var (
			pairs   [buffers][2]*Buffer
			waiters [buffers][2]*waiter
			waiting []*waiter
		)
		reserved := [2]*Revocable{queued.Reserve(func() {}), looked.Reserve(func() {})}
		isReady := func(w *waiter) bool {
			select {
			case <-w.ready:
				return true
			default:
				return false
			}
		}
		for step := range 400 {
			n := random.IntN(buffers)
			pair, w := &pairs[n], &waiters[n]
			switch {
			case random.IntN(10) == 0: // a download takes memory, or returns it
				bytes := min(BlockSize*random.Int64N(20), queued.all.free)
				if reserved[0].held > 0 {
					bytes = -reserved[0].held
				}
				reserved[0].hold(bytes)
				queued.serve()
				reserved[1].hold(bytes)
				waiting = looked.look(waiting)
			case pair[0] == nil:
				of, size := random.IntN(10), []int64{BlockSize, MinLimit, MinLimit, 8 << 20, 16 << 20}[random.IntN(5)]
				*pair = [2]*Buffer{budgets[0][of].Buffer(size), budgets[1][of].Buffer(size)}
				fallthrough
			case w[0] == nil && pair[0].missing() > 0 && random.IntN(6) > 0:
				bytes := min(max(pair[0].held, BlockSize), pair[0].missing())
				for i := range w {
					w[i] = &waiter{buffer: pair[i], bytes: bytes, ready: make(chan struct{}), arrival: int64(step)}
				}
				queued.queue.add(w[0])
				queued.serve()
				waiting = looked.look(append(waiting, w[1]))
			case w[0] != nil && random.IntN(4) > 0: // goes on to wait
			case w[0] != nil:
				queued.queue.remove(w[0])
				queued.serve()
				waiting = looked.look(slices.DeleteFunc(waiting, func(other *waiter) bool { return other == w[1] }))
				*w = [2]*waiter{}
			case random.IntN(3) == 0:
				queued.seal(pair[0])
				pair[1].set(pair[1].held, pair[1].held)
				waiting = looked.look(waiting)
			default:
				queued.release(pair[0])
				pair[1].set(0, 0)
				waiting = looked.look(waiting)
				*pair = [2]*Buffer{}
			}
			for n := range waiters {
				w := &waiters[n]
				if w[0] == nil {
					continue
				}
				if isReady(w[0]) != isReady(w[1]) {
					t.Fatalf(
						"seed %d, step %d: buffer %d is served: %v, want %v", seed, step, n, isReady(w[0]),
						isReady(w[1]))
				}
				if (queued.starved == w[0]) != (looked.starved == w[1]) {
					t.Fatalf(
						"seed %d, step %d: buffer %d is the first that starves: %v", seed, step, n,
						queued.starved == w[0])
				}
				if isReady(w[0]) {
					*w = [2]*waiter{}
					granted++
				}
			}
			for c := range budgets[0] {
				if got, want := budgets[0][c].Scarce(), budgets[1][c].Scarce(); got != want {
					t.Fatalf(
						"seed %d, step %d: memory is scarce for %v: %v, want %v", seed, step, budgets[0][c].consumer,
						got, want)
				}
			}
			if got := queued.Waits().Waiting; got != len(waiting) {
				t.Fatalf("seed %d, step %d: %d wait, want %d", seed, step, got, len(waiting))
			}
			waited += len(waiting)
		}
	}
	if granted < 1000 || waited < 10_000 {
		t.Errorf("only %d buffers were served, and %d waited", granted, waited)
	}
}

// BenchmarkWait lets a buffer come and give up while 10,000 wait.
func BenchmarkWait(b *testing.B) {
	const buffers = 10_000
	for _, test := range []struct {
		label           string
		groups, members int
		held            int64 // by each that waits
	}{
		{"empty-of-one-member", 1, 1, 0},
		{"empty-of-100-members", 10, 10, 0},
		{"empty-of-10000-members", 100, 100, 0},
		{"empty-of-10000-groups", 10_000, 1, 0},
		{"holding-of-100-members", 10, 10, BlockSize},
	} {
		b.Run(test.label, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			budget := New(4 << 30)
			var waiting []*Buffer
			for i := range buffers {
				buffer := budget.For(fmt.Sprint(i%test.groups), fmt.Sprint(i/test.groups%test.members)).Buffer(MinLimit)
				buffer.hold(test.held)
				waiting = append(waiting, buffer)
			}
			rest := budget.Buffer(budget.Limit())
			rest.hold(budget.Limit() - budget.Used())
			for _, buffer := range waiting {
				go func() { _ = budget.acquire(ctx, buffer, BlockSize) }()
			}
			for budget.Waits().Waiting < buffers {
				runtime.Gosched()
			}
			gone, giveUp := context.WithCancel(b.Context())
			giveUp()
			for b.Loop() {
				if budget.acquire(gone, budget.For("more", "more").Buffer(MinLimit), BlockSize) == nil {
					b.Fatal("there is memory")
				}
			}
		})
	}
}
