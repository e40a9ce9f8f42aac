package events

import (
	"slices"
	"sync"

	"github.com/babelftp/babelftp/internal/report"
)

// maxMemory limits the bytes of confirmed events in memory, for all tenants together. A server that shuts down moves
// each of them to its bucket with two requests.
const maxMemory = 4 << 20

// A Memory limits the confirmed events in memory. All queues of a server share one.
type Memory struct {
	mu    sync.Mutex
	bytes *report.Shares
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{bytes: report.NewShares(maxMemory)} }

// hold adds an event if there is room for it.
func (m *Memory) hold(e Event) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.bytes.Fits(report.Owner{Tenant: e.Tenant, User: e.User}, e.bytes) {
		return false
	}
	m.bytes.Add(report.Owner{Tenant: e.Tenant, User: e.User}, e.bytes)
	return true
}

func (m *Memory) release(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes.Add(report.Owner{Tenant: e.Tenant, User: e.User}, -e.bytes)
}

// A waiting holds the confirmed events of a tenant in memory. Its users take turns.
type waiting struct {
	memory *Memory
	added  chan struct{} // has a value if there may be events

	mu     sync.Mutex
	users  []string // users with events, in the order of their turns
	byUser map[string][]Event
}

func newWaiting(m *Memory) *waiting {
	return &waiting{memory: m, added: make(chan struct{}, 1), byUser: map[string][]Event{}}
}

// add adds an event. It returns false if the memory is full.
func (w *waiting) add(e Event) bool {
	if !w.memory.hold(e) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byUser[e.User]) == 0 {
		w.users = append(w.users, e.User)
	}
	w.byUser[e.User] = append(w.byUser[e.User], e)
	w.wake()
	return true
}

func (w *waiting) wake() {
	select {
	case w.added <- struct{}{}:
	default:
	}
}

// take removes a batch of events. It is empty if no events are waiting.
func (w *waiting) take() (batch []Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(batch) < maxBatch && len(w.users) > 0 {
		user := w.users[0]
		all := w.byUser[user]
		batch = append(batch, all[0])
		w.memory.release(all[0])
		if w.users = slices.Delete(w.users, 0, 1); len(all) == 1 {
			delete(w.byUser, user)
		} else {
			w.byUser[user] = all[1:]
			w.users = append(w.users, user)
		}
	}
	if len(w.users) > 0 {
		w.wake()
	}
	return batch
}
