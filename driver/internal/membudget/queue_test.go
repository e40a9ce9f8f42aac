package membudget

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A line is a budget with buffers that wait for one block each. Their names consist of group, member and a number, such
// as "acme/alice/1".
type line struct {
	*Budget
	rest    *Revocable // holds all memory that buffers do not hold
	waiting map[string]*waiter
}

// newLine returns a budget in which members hold the given numbers of blocks, and a reservation holds the rest.
func newLine(held map[string]int64) *line {
	l := &line{Budget: New(64 << 20), waiting: map[string]*waiter{}}
	for name, blocks := range held {
		l.of(name).Buffer(blocks * BlockSize).hold(blocks * BlockSize)
	}
	l.rest = l.Reserve(func() {})
	l.rest.hold(l.all.free)
	return l
}

// of returns the budget of the member with this name.
func (l *line) of(name string) *Budget {
	parts := strings.Split(name, "/")
	return l.For(parts[0], parts[1])
}

func (l *line) wait(names ...string) {
	for _, name := range names {
		l.waiting[name] = &waiter{buffer: l.of(name).Buffer(BlockSize), bytes: BlockSize, ready: make(chan struct{})}
		l.queue.add(l.waiting[name])
		l.serve()
	}
}

func (l *line) giveUp(name string) {
	l.queue.remove(l.waiting[name])
	delete(l.waiting, name)
	l.serve()
}

// want frees one block after another, and checks that the waiting buffers get them in this order.
func (l *line) want(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		l.rest.hold(-BlockSize)
		l.serve()
		var served []string
		for name, w := range l.waiting {
			select {
			case <-w.ready:
				served = append(served, name)
				delete(l.waiting, name)
			default:
			}
		}
		if !slices.Equal(served, []string{name}) {
			t.Fatalf("%q got a block, want %s", served, name)
		}
	}
	if l.Waits().Waiting != len(l.waiting) {
		t.Errorf("%d buffers wait, want %d", l.Waits().Waiting, len(l.waiting))
	}
}

// TestQueue checks that memory goes to the group with the least memory, then to the member with the least memory, and
// then to the buffer that arrived first.
func TestQueue(t *testing.T) {
	held := map[string]int64{"a/x": 3, "a/y": 1, "b/x": 2}
	for name, run := range map[string]func(t *testing.T, l *line){
		"order": func(t *testing.T, l *line) {
			l.wait("a/x/1", "a/y/1", "b/x/1", "b/y/1", "b/y/2")
			l.want(t, "b/y/1", "b/y/2", "a/y/1", "b/x/1", "a/x/1")
		},
		"later-of-a-group-that-holds-nothing": func(t *testing.T, l *line) {
			l.wait("a/y/1", "a/y/2", "b/y/1")
			l.want(t, "b/y/1")
			l.wait("c/x/1")
			l.want(t, "c/x/1", "a/y/1", "a/y/2")
		},
		"first-gives-up": func(t *testing.T, l *line) {
			l.wait("b/y/1", "b/y/2", "a/y/1")
			l.giveUp("b/y/1")
			l.want(t, "b/y/2", "a/y/1")
		},
		"last-of-a-member-gives-up-and-returns": func(t *testing.T, l *line) {
			l.wait("b/y/1", "a/y/1")
			l.giveUp("b/y/1")
			l.want(t, "a/y/1")
			l.wait("b/y/3")
			l.want(t, "b/y/3")
		},
		"holds-more-while-it-waits": func(t *testing.T, l *line) {
			l.wait("b/y/1", "a/y/1")
			l.rest.hold(-4 * BlockSize)
			l.of("b/x").Buffer(4 * BlockSize).hold(4 * BlockSize)
			l.want(t, "a/y/1", "b/y/1")
		},
		"member-has-its-share": func(t *testing.T, l *line) {
			share := l.of("d/x").Share()
			l.rest.hold(-share)
			buffer := l.of("d/x").Buffer(share)
			buffer.hold(share)
			l.wait("d/x/1", "a/y/1")
			l.want(t, "a/y/1")
			l.rest.hold(share)
			l.release(buffer)
			l.want(t, "d/x/1")
		},
	} {
		t.Run(name, func(t *testing.T) { run(t, newLine(held)) })
	}
}

// BenchmarkWait measures a canceled wait while 10,000 buffers wait.
func BenchmarkWait(b *testing.B) {
	const buffers = 10_000
	for _, test := range []struct {
		label           string
		groups, members int
		held            int64 // by each waiting buffer
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
					b.Fatal("got memory although the budget is full")
				}
			}
		})
	}
}
