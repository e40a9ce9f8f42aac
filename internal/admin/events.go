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
	// changesEvery is the minimum time between two events of a stream.
	changesEvery = time.Second
	// keepAliveEvery is the idle time after which a stream sends the event "alive", so that no proxy
	// closes it as dead. It is an event because browsers do not report SSE comments to scripts.
	keepAliveEvery = 15 * time.Second
	// writeTimeout limits the time that a client may take to read an event.
	writeTimeout = 10 * time.Second
	// maxStreams limits the concurrent streams.
	maxStreams = 32
	// maxListed limits the length of each list in an event.
	maxListed = 200
)

// A State is the data of the event "state". Each list has at most maxListed items; Totals has the full
// counts.
type State struct {
	Server    Server                 `json:"server"`
	Sessions  []report.SessionInfo   `json:"sessions"`  // active transfers first, then most recently active
	Transfers []*report.TransferInfo `json:"transfers"` // oldest first
	Tenants   []Tenant               `json:"tenants"`   // unusable buckets first, then most sessions
	Bans      []bans.Ban             `json:"bans"`
	Totals    struct {
		Sessions  int `json:"sessions"`
		Transfers int `json:"transfers"`
		Tenants   int `json:"tenants"`
		Bans      int `json:"bans"`
	} `json:"totals"`
}

// state returns the current state.
func (h *Handler) state() State {
	sessions := h.Source.Sessions()
	s := State{Server: h.Source.Server(), Transfers: transfersOf(sessions), Tenants: h.Source.Tenants(sessions),
		Bans: h.Bans.All()}
	s.Totals.Sessions, s.Totals.Transfers, s.Totals.Tenants, s.Totals.Bans = len(sessions), len(s.Transfers),
		len(s.Tenants), len(s.Bans)
	idle := func(s report.SessionInfo) int {
		if s.Transfer == nil {
			return 1
		}
		return 0
	}
	s.Sessions = first(sessions, func(a, b report.SessionInfo) int {
		return cmp.Or(cmp.Compare(idle(a), idle(b)), b.LastActive.Compare(a.LastActive), cmp.Compare(a.ID, b.ID))
	})
	s.Transfers = first(s.Transfers, func(a, b *report.TransferInfo) int {
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

// first sorts a list and returns a copy of its first maxListed items.
func first[T any](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return append([]T{}, list[:min(len(list), maxListed)]...) // a copy, so that the rest can be freed
}

// events manages the streams of all clients. They share the encoded state.
type events struct {
	build func() State

	mu      sync.Mutex
	streams int
	at      time.Time // when last was built, truncated to changesEvery
	last    []byte    // encoded State; replaced when it changes
}

// current returns the state in JSON, at most one second old. It is built at most once per second, and only if
// a stream needs it.
func (e *events) current() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now().Truncate(changesEvery); !now.Equal(e.at) {
		state, _ := json.Marshal(e.build()) // a State can always be encoded
		if e.at = now; !bytes.Equal(state, e.last) {
			e.last = state
		}
	}
	return e.last
}

// acquire counts a new stream. It returns false if there are too many.
func (e *events) acquire() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.streams == maxStreams {
		return false
	}
	e.streams++
	return true
}

func (e *events) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams--
}

// serve sends server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html) until the
// client disconnects or the server closes the connection.
func (e *events) serve(w http.ResponseWriter, r *http.Request) {
	if !e.acquire() {
		Fail(w, &Error{http.StatusServiceUnavailable, "too many event streams: close other pages"})
		return
	}
	defer e.release()
	stream := http.NewResponseController(w)
	_ = stream.SetReadDeadline(time.Time{}) // the deadline of the request would end the stream
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // disables buffering in nginx
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
