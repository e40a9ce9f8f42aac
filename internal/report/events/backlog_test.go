package events

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// fill makes changes of a user until one is refused, and returns the number of changes.
func fill(t *testing.T, q *Queue, user string) (made int) {
	t.Helper()
	for ; made < 1000; made++ {
		e, err := q.begin(t.Context(), Event{Type: view.Upload, User: user, Path: fmt.Sprint(user, made)})
		if err != nil {
			if !errors.Is(err, syscall.EAGAIN) || !strings.Contains(err.Error(), "share of 12288 bytes") {
				t.Fatal(err)
			}
			return made
		}
		must.OK(t, q.end(t.Context(), e, nil))
	}
	t.Fatal("no change was refused")
	return made
}

// TestBacklog fills the share of a user while the receiver is down. Others still have room, also on a server that
// starts later. When the receiver is up again, it gets every event, and there is room again.
func TestBacklog(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	r.setDown(true)
	queue := func() *Queue {
		q := b.queue(t, r)
		q.Backlog = 12 << 10
		q.backlog.bytes = report.NewShares(q.Backlog)
		return q
	}
	q := queue()
	alice := fill(t, q, "alice")
	bob := fill(t, q, "bob")
	if waiting := len(b.events(t)); bob < alice/3 || waiting != alice+bob {
		t.Errorf("alice made %d changes, bob %d, with %d events waiting", alice, bob, waiting)
	}
	stop := run(t, q)
	waitUntil(t, func() bool { // the server stores its events in memory in the bucket
		return !slices.ContainsFunc(b.events(t), func(key string) bool {
			return !strings.HasSuffix(key, confirmedSuffix)
		})
	})
	stop()

	again := queue()
	found, err := again.measure(t.Context())
	must.OK(t, err)
	if more := fill(t, again, "alice"); more > 1 || !found {
		t.Errorf("alice made %d more changes on another server", more)
	}
	e, err := again.begin(t.Context(), Event{Type: view.Upload, User: "carol", Path: "carol"})
	must.OK(t, err)
	must.OK(t, again.end(t.Context(), e, nil))
	r.setDown(false)
	stop = run(t, again)
	waitUntil(t, func() bool { return len(b.events(t)) == 0 })
	stop()
	r.mu.Lock()
	got := len(r.got)
	r.mu.Unlock()
	if got < alice+bob+1 {
		t.Errorf("the receiver got %d events, want %d", got, alice+bob+1)
	}
	change(t, again, "room", nil)
}

// TestTurns takes events of several users from memory.
func TestTurns(t *testing.T) {
	w := newWaiting(NewMemory())
	held := 0
	for w.add(Event{Tenant: "acme", User: "alice", bytes: 10 << 10}) {
		held++
	}
	if held < 100 || held > maxMemory/(10<<10)/2 {
		t.Errorf("alice has %d events in memory", held)
	}
	for i := range 3 {
		if !w.add(Event{Tenant: "acme", User: "bob", ID: fmt.Sprint(i), bytes: 100}) {
			t.Error("bob has no room")
		}
	}
	other := newWaiting(w.memory)
	if !other.add(Event{Tenant: "other", User: "carol", bytes: 100}) {
		t.Error("another tenant has no room")
	}
	batch := w.take()
	if users := []string{batch[1].User, batch[3].User, batch[5].User}; len(batch) != maxBatch ||
		!slices.Equal(users, []string{"bob", "bob", "bob"}) || batch[3].ID != "1" {
		t.Errorf("got a batch of %d events of %v", len(batch), users)
	}
	for len(w.take()) > 0 {
	}
	other.take()
	if free := w.memory.bytes.Free(); free != maxMemory {
		t.Errorf("%d bytes were not released", maxMemory-free)
	}
}
