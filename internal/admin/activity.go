package admin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/report/audit"
)

// An Activity is a page of the audit log.
type Activity struct {
	Events        []json.RawMessage `json:"events"`         // newest first
	Next          string            `json:"next"`           // cursor of the next page; empty after the last one
	SearchedBytes int64             `json:"searched_bytes"` // number of bytes that were read
	Complete      bool              `json:"complete"`       // the logs of all replicas were searched to their beginning
	Sources       []ActivitySource  `json:"sources"`
}

// An ActivitySource is the audit log of a replica.
type ActivitySource struct {
	Replica int    `json:"replica"`
	File    string `json:"file,omitempty"`
	Reason  string `json:"reason,omitempty"` // what was not searched, and why
}

// activityParameters are the parameters of a search of the audit log.
func activityParameters() []parameter {
	return []parameter{
		{name: "user", meaning: "name of a user, with or without @TENANT, or of an administrator"},
		{name: "tenant", meaning: "name of a tenant"},
		{name: "path", meaning: "pathname as a user sees it, or URI of an object; renames are followed"},
		{name: "address", meaning: "address or network of the client"},
		{name: "event", meaning: "names of events, separated by commas"},
		{name: "outcome", meaning: "ok, failed or refused"},
		{name: "from", meaning: "only lines since this date or time (RFC 3339)"},
		{name: "to", meaning: "only lines until this date or time (RFC 3339)"},
	}
}

// pageParameters are the parameters for one page of a search.
func pageParameters() []parameter {
	return []parameter{
		{name: "limit", meaning: "maximum number of events, up to 1000",
			schema: map[string]any{"type": "integer", "minimum": 1, "maximum": audit.MaxLimit}},
		{name: "cursor", meaning: "next of the previous page"},
	}
}

// queryOf parses the parameters of a search.
func queryOf(r *http.Request) (q audit.Query, err error) {
	q = audit.Query{
		User: r.FormValue("user"), Tenant: r.FormValue("tenant"), Path: r.FormValue("path"),
		Address: strings.TrimSpace(r.FormValue("address")), Outcome: r.FormValue("outcome"),
	}
	if events := r.FormValue("event"); events != "" {
		q.Events = strings.Split(events, ",")
	}
	if q.From, err = parseTime(r, "from", 0); err != nil {
		return q, err
	}
	if q.To, err = parseTime(r, "to", 24*time.Hour-time.Nanosecond); err != nil {
		return q, err
	}
	if limit := r.FormValue("limit"); limit != "" {
		if q.Limit, err = strconv.Atoi(limit); err != nil || q.Limit == 0 {
			return q, &Error{http.StatusBadRequest,
				fmt.Sprintf("invalid limit %q: want 1 to %d", limit, audit.MaxLimit)}
		}
	}
	return q, nil
}

// parseTime parses a time, or a date to which it adds a part of the day.
func parseTime(r *http.Request, name string, ofDay time.Duration) (time.Time, error) {
	text := r.FormValue(name)
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, &Error{http.StatusBadRequest,
			fmt.Sprintf("invalid %s %q: want 2026-11-01 or 2026-11-01T12:00:00Z", name, text)}
	}
	return day.Add(ofDay), nil
}

func (h *Handler) searchActivity(r *http.Request) (*Activity, error) {
	q, err := queryOf(r)
	if err != nil {
		return nil, err
	}
	cursors, err := parseCursors(r.FormValue("cursor"))
	if err != nil {
		return nil, err
	}
	return h.search(r.Context(), q, cursors)
}

// search searches the audit logs of all replicas, or of those with a cursor.
func (h *Handler) search(ctx context.Context, q audit.Query, cursors map[int]string) (*Activity, error) {
	if cursors == nil {
		cursors = map[int]string{}
		for _, n := range h.replicas() {
			cursors[n] = ""
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	m := &merging{limit: q.Limit, logs: map[int]*replicaLog{}}
	var invalid error
	for n, cursor := range cursors {
		all.Go(func() {
			l := &replicaLog{cursor: cursor}
			err := panics.Catch(func() (err error) {
				l.Result, err = h.searchReplica(ctx, n, q, cursor)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			e, ok := errors.AsType[*Error](err)
			if ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusServiceUnavailable) {
				invalid = e
			} else if err != nil {
				l.failed, l.Result = true, &audit.Result{Reason: err.Error()}
			}
			m.logs[n] = l
		})
	}
	all.Wait()
	if invalid != nil {
		return nil, invalid
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.merge(), nil
}

// searchReplica searches the audit log of one replica. The error is an [Error] if the query is invalid.
func (h *Handler) searchReplica(ctx context.Context, n int, q audit.Query, cursor string) (*audit.Result, error) {
	if n != h.self() {
		r := &audit.Result{}
		return r, h.Peers.Do(ctx, n, http.MethodPost, "/search", peerSearch{q, cursor}, r)
	}
	r, err := h.Search.Search(ctx, q, cursor)
	if e, ok := errors.AsType[*audit.QueryError](err); ok {
		return nil, &Error{http.StatusBadRequest, e.Error()}
	}
	if errors.Is(err, audit.ErrBusy) {
		return nil, &Error{http.StatusServiceUnavailable, err.Error()}
	}
	return r, err
}

// A replicaLog is a page of the audit log of a replica.
type replicaLog struct {
	*audit.Result
	cursor string // where the next page begins
	failed bool
	used   int // number of lines that are part of the merged page
}

// exhausted reports whether all lines are part of the merged page.
func (l *replicaLog) exhausted() bool { return l.used == len(l.Lines) }

// merging merges the pages of replicas.
type merging struct {
	limit int
	logs  map[int]*replicaLog
}

// merge returns the newest lines of all pages. It stops before lines that are older than what a replica has searched,
// so that the next page has no newer lines.
func (m *merging) merge() *Activity {
	page := &Activity{Events: []json.RawMessage{}, Complete: true}
	if m.limit == 0 {
		m.limit = audit.DefaultLimit
	}
	for len(page.Events) < m.limit {
		l := m.newest()
		if l == nil {
			break
		}
		found := l.Lines[l.used]
		l.used, l.cursor = l.used+1, found.Next
		// Replicas that share a file find the same lines.
		if n := len(page.Events); n == 0 || !bytes.Equal(page.Events[n-1], found.Line) {
			page.Events = append(page.Events, found.Line)
		}
	}
	next := map[int]string{}
	for n, l := range m.logs {
		page.SearchedBytes += l.Bytes
		page.Sources = append(page.Sources, ActivitySource{n, l.File, l.Reason})
		switch {
		case l.failed:
			page.Complete = false
		case !l.exhausted():
			next[n] = l.cursor
		case !l.Complete:
			next[n] = l.Next
		}
	}
	slices.SortFunc(page.Sources, func(a, b ActivitySource) int { return a.Replica - b.Replica })
	if len(next) > 0 {
		page.Next, page.Complete = encodeCursors(next), false
	}
	return page
}

// newest returns the page with the newest line, or nil if there is none that may be next.
func (m *merging) newest() (newest *replicaLog) {
	for _, l := range m.logs {
		if !l.exhausted() && (newest == nil || l.Lines[l.used].Time.After(newest.Lines[newest.used].Time)) {
			newest = l
		}
	}
	for _, l := range m.logs {
		searching := l.exhausted() && !l.Complete && !l.failed
		if newest != nil && searching && newest.Lines[newest.used].Time.Before(l.Until) {
			return nil
		}
	}
	return newest
}

func encodeCursors(cursors map[int]string) string {
	text, _ := json.Marshal(cursors) // cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}

// parseCursors returns the cursors of the replicas whose logs are not searched to their beginning; nil for all.
func parseCursors(text string) (cursors map[int]string, err error) {
	if text == "" {
		return nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &cursors)
	}
	if err != nil || len(cursors) == 0 {
		return nil, &Error{http.StatusBadRequest, "invalid cursor: pass next of the previous page"}
	}
	return cursors, nil
}
