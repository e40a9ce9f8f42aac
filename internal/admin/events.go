package admin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/users/bans"
)

const (
	// changesEvery is the shortest time between two events.
	changesEvery = time.Second
	// keepAliveEvery is the time after which a stream without events gets the event "alive", before a proxy takes it
	// for dead. Browsers tell no page of comments, so it is an event.
	keepAliveEvery = 15 * time.Second
	// writeTimeout is how long a client may take to read an event.
	writeTimeout = 10 * time.Second
	// maxStreams is how many streams there may be at the same time.
	maxStreams = 32
	// maxListed is how many of each kind an event has.
	maxListed = 200
)

// A State is the event "state". Each list has 200 at most, and Totals says how many there are.
type State struct {
	Server    Server                  `json:"server"`
	Sessions  []report.ShownSession   `json:"sessions"`  // those with transfers first, then the active ones
	Transfers []*report.ShownTransfer `json:"transfers"` // the oldest first
	Tenants   []Tenant                `json:"tenants"`   // those whose buckets cannot be used first, then those with most sessions
	Bans      []bans.Ban              `json:"bans"`
	Totals    struct {
		Sessions  int `json:"sessions"`
		Transfers int `json:"transfers"`
		Tenants   int `json:"tenants"`
		Bans      int `json:"bans"`
	} `json:"totals"`
}

// state is the state at this moment.
func (h *Handler) state() State {
	sessions := h.Source.Sessions()
	s := State{Server: h.Source.Server(), Transfers: transfersOf(sessions), Tenants: h.Source.Tenants(sessions),
		Bans: h.Bans.All()}
	s.Totals.Sessions, s.Totals.Transfers, s.Totals.Tenants, s.Totals.Bans = len(sessions), len(s.Transfers),
		len(s.Tenants), len(s.Bans)
	idle := func(s report.ShownSession) int {
		if s.Transfer == nil {
			return 1
		}
		return 0
	}
	s.Sessions = first(sessions, func(a, b report.ShownSession) int {
		return cmp.Or(cmp.Compare(idle(a), idle(b)), b.LastActive.Compare(a.LastActive), cmp.Compare(a.ID, b.ID))
	})
	s.Transfers = first(s.Transfers, func(a, b *report.ShownTransfer) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Session, b.Session))
	})
	up := func(t Tenant) int {
		if t.BucketUp != nil && !*t.BucketUp {
			return 0
		}
		return 1
	}
	s.Tenants = first(s.Tenants, func(a, b Tenant) int {
		return cmp.Or(cmp.Compare(up(a), up(b)), cmp.Compare(b.Sessions, a.Sessions), cmp.Compare(a.Name, b.Name))
	})
	s.Bans = s.Bans[:min(len(s.Bans), maxListed)]
	return s
}

// first sorts a list, and returns its first maxListed.
func first[T any](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return append([]T{}, list[:min(len(list), maxListed)]...) // the rest need not stay in memory
}

// events are the streams of all clients, which share what they send.
type events struct {
	build func() State

	mu      sync.Mutex
	streams int
	at      time.Time // the second of last
	last    []byte    // replaced when something has changed
}

// current is the state in JSON, a second old at most. It is built once in each second in which a stream asks for it.
func (e *events) current() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now().Truncate(changesEvery); !now.Equal(e.at) {
		state, _ := json.Marshal(e.build()) // has nothing that JSON lacks
		if e.at = now; !bytes.Equal(state, e.last) {
			e.last = state
		}
	}
	return e.last
}

// enter counts a stream, and returns false for one too many.
func (e *events) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streams == maxStreams {
		return false
	}
	e.streams++
	return true
}

func (e *events) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams--
}

// serve sends server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) until the client or
// the server ends.
func (e *events) serve(w http.ResponseWriter, r *http.Request) {
	if !e.enter() {
		Fail(w, &Error{http.StatusServiceUnavailable, "there are too many streams of events: close other pages"})
		return
	}
	defer e.leave()
	stream := http.NewResponseController(w)
	_ = stream.SetReadDeadline(time.Time{}) // that of the request would end the stream
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // of nginx
	ticker := time.NewTicker(changesEvery)
	defer ticker.Stop()
	var sent []byte
	var at time.Time
	for {
		var event []byte
		if state := e.current(); !bytes.Equal(state, sent) {
			event = slices.Concat([]byte("event: state\ndata: "), state, []byte("\n\n"))
			sent = state
		} else if time.Since(at) >= keepAliveEvery {
			event = []byte("event: alive\ndata: {}\n\n")
		}
		if event != nil {
			at = time.Now()
			_ = stream.SetWriteDeadline(at.Add(writeTimeout))
			if _, err := w.Write(event); err != nil {
				return
			}
			if stream.Flush() != nil {
				return
			}
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}
