package audit

import (
	"bytes"
	"testing"

	"github.com/babelftp/babelftp/internal/report"
)

// An owner that fills the queue leaves room for other users and tenants.
func TestQueueShares(t *testing.T) {
	q := newQueue()
	line := bytes.Repeat([]byte("x"), 1<<10)
	fill := func(o report.Owner) (bytes int) {
		for bytes <= maxQueued {
			if _, ok := q.add(o, line); !ok {
				return bytes
			}
			bytes += len(line)
		}
		return bytes
	}
	alice, bob, carol := report.Owner{Tenant: "acme", User: "alice"}, report.Owner{Tenant: "acme", User: "bob"}, report.Owner{Tenant: "other", User: "carol"}
	want := func(o report.Owner, low, high int) {
		t.Helper()
		if got := fill(o); got < maxQueued/100*low || got > maxQueued/100*high {
			t.Errorf("%v: got %d %% of the queue, want %d to %d", o, 100*got/maxQueued, low, high)
		}
	}
	want(alice, 32, 34) // half of the free bytes
	if q.hasRoom(alice) || !q.hasRoom(carol) || !q.hasRoom(report.Owner{}) {
		t.Error("only the share of alice should be full")
	}
	want(bob, 14, 18) // until the tenant has as much as is free
	want(carol, 15, 18)
	want(report.Owner{Tenant: "third", User: "dave"}, 10, 13)
	if q.hasRoom(bob) || q.hasRoom(report.Owner{}) {
		t.Error("the share of the tenant should be full")
	}
	lines := q.len()
	b := q.take(maxQueued)
	if b.lines != lines || q.bytes.Free() != maxQueued || !q.hasRoom(alice) {
		t.Errorf("got %d of %d lines, %d free bytes", b.lines, lines, q.bytes.Free())
	}
	want(report.Owner{}, 99, 101) // lines without an owner have no share
}

// Lines come out in the order in which they were added, and a caller is notified when there is room.
func TestQueueOrder(t *testing.T) {
	q := newQueue()
	for _, text := range []string{"a\n", "b\n", "c\n"} {
		q.add(report.Owner{Tenant: "acme", User: text}, []byte(text))
	}
	if b := q.take(3); string(b.text) != "a\nb\n" || b.lines != 2 {
		t.Errorf("got %q, %d lines", b.text, b.lines)
	}
	taken, ok := q.add(report.Owner{}, make([]byte, maxQueued))
	if ok {
		t.Fatal("added a line that is too long")
	}
	if b := q.take(1); string(b.text) != "c\n" {
		t.Errorf("got %q", b.text)
	}
	<-taken
	if b := q.take(1); b.lines != 0 {
		t.Errorf("got %d remaining lines", b.lines)
	}
}
