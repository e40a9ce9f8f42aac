package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
)

const (
	// maxSearches limits the searches that run at the same time.
	maxSearches = 2
	// maxSearchBytes limits what one search reads. A disk that reads 200 MB a second needs five seconds for it.
	maxSearchBytes = 1 << 30
	// maxSearchTime limits the time of one search; a search for a path may take twice as long.
	maxSearchTime = 10 * time.Second
	// maxWaitTime limits how long a search waits for others.
	maxWaitTime = 5 * time.Second
	// maxFoundBytes limits the bytes of the lines that one search returns.
	maxFoundBytes = 4 << 20
)

// Limits of [Query.Limit].
const (
	DefaultLimit = 200
	MaxLimit     = 1000
)

// A Query selects lines of an audit log. Empty fields select all lines.
type Query struct {
	User     string   // name of a user, with or without @TENANT, or of an administrator
	Tenant   string   // name of a tenant
	Path     string   // a pathname as a user sees it, or the URI of an object, followed through renames as by [Follow]
	Address  string   // address or network of a client
	Events   []string // any of these events
	Outcome  string
	From, To time.Time
	Limit    int // maximum number of lines; DefaultLimit if it is 0
}

// A Found is a line that a [Query] selects.
type Found struct {
	Time time.Time
	Line json.RawMessage
	Next string // cursor to continue with older lines
}

// A Result is a page of the lines that a [Query] selects.
type Result struct {
	Lines    []Found   // newest first
	Next     string    // cursor to continue with older lines; empty if Complete
	Complete bool      // all lines were searched
	Until    time.Time // all lines since then were searched; the zero time if Complete or unknown
	Bytes    int64     // number of bytes that were read
	File     string    // the searched audit log; empty if it is not in a file
	Reason   string    // what was not searched, and why
}

// ErrBusy reports that too many searches are running.
var ErrBusy = errors.New("other searches of the audit log are running: try again in a few seconds")

// A QueryError reports an invalid query.
type QueryError struct{ Text string }

// Error implements error.
func (e *QueryError) Error() string { return e.Text }

// A Searcher searches the audit log of a server. Its methods are safe for concurrent use.
type Searcher struct {
	file   string  // empty if the audit log is not in a file
	reason string  // why file is empty
	recent *Recent // searched without a file
	slots  chan struct{}

	bytes int64 // limits of one search, shorter in tests
	time  time.Duration
}

// NewSearcher returns a searcher of the configured file or, if there is none, of the recent lines.
func NewSearcher(cfg config.Audit, recent *Recent) *Searcher {
	s := &Searcher{
		file: cfg.File, recent: recent, slots: make(chan struct{}, maxSearches), bytes: maxSearchBytes,
		time: maxSearchTime,
	}
	const only = ", so only the latest lines, which are in memory, were searched; set audit.file to search all"
	switch {
	case cfg.Stdout():
		s.file, s.reason = "", "audit.file is standard output"+only
	case cfg.File == "" && cfg.Webhook.URL != "":
		s.reason = "the audit log is only sent to audit.webhook" + only
	case cfg.File == "":
		s.reason = "audit.file is not set" + only
	}
	return s
}

// A cursor says where a search continues.
type cursor struct {
	position

	Skip  int      `json:"s,omitempty"` // number of lines before the position that were returned already
	Names []string `json:"n,omitempty"` // other names of the file
}

// maxCursorNames limits the bytes of the names in a cursor. The cursors of all replicas must fit into a URL.
const maxCursorNames = 1 << 10

func (c cursor) String() string {
	text, _ := json.Marshal(c) // cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil || c.Skip < 0 || c.Offset < 0 {
		return c, &QueryError{"invalid cursor: pass next of the previous response"}
	}
	return c, nil
}

// Search returns the latest lines that a query selects, or older ones with the cursor of an earlier result. It reads a
// limited number of bytes. Cursors stay valid while the log grows and is rotated. The error is a [QueryError] if the
// query is invalid.
func (s *Searcher) Search(ctx context.Context, q Query, next string) (*Result, error) {
	c, err := parseCursor(next)
	if err != nil {
		return nil, err
	}
	f, err := newFilter(q)
	if err != nil {
		return nil, err
	}
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.slots }()
	if s.file == "" {
		return s.searchRecent(f, c), nil
	}
	files, problems, err := logFiles(s.file)
	if err != nil {
		return &Result{Complete: true, File: s.file, Reason: err.Error()}, nil
	}
	scan := &scan{
		files: files, budget: &budget{bytes: s.bytes, deadline: time.Now().Add(s.time)},
		from: q.From, to: q.To, keep: f.limit, problems: problems, unread: map[string]bool{},
	}
	search := searchLines
	if f.Path != "" {
		search = searchPath
	}
	r, err := search(ctx, scan, f, c)
	if errors.Is(err, errCursorGone) {
		return nil, &QueryError{err.Error()}
	}
	if err != nil {
		return nil, err
	}
	r.File, r.Reason, r.Bytes = s.file, strings.Join(scan.problems, "; "), scan.budget.read
	return r, nil
}

// acquire waits until fewer than maxSearches are running.
func (s *Searcher) acquire(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, maxWaitTime)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		return ctx.Err()
	case <-waiting.Done():
		return cmp.Or(ctx.Err(), ErrBusy)
	}
}

// searchRecent searches the lines in memory.
func (s *Searcher) searchRecent(f *filter, c cursor) *Result {
	var entries []Entry
	for _, line := range s.recent.Lines() {
		var e Entry
		if json.Unmarshal(line, &e) == nil {
			e.Line = line
			entries = append(entries, e)
		}
	}
	if f.Path != "" {
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Path == "" || !f.ofTenant(&e) })
		entries = Follow(entries, f.Path)
	}
	r := &Result{Reason: s.reason}
	r.page(f, entries, c)
	r.Complete = r.Next == ""
	return r
}

// page fills the result with the entries that a filter selects, which are sorted by time, except the ones that were
// returned before.
func (r *Result) page(f *filter, entries []Entry, c cursor) {
	skip, size := c.Skip, 0
	for _, e := range slices.Backward(entries) {
		switch {
		case !f.selects(&e):
			continue
		case skip > 0:
			skip--
			continue
		case len(r.Lines) == f.limit, size > maxFoundBytes:
			r.Next = c.String()
			r.Until = r.Lines[len(r.Lines)-1].Time
			return
		}
		c.Skip++
		size += len(e.Line)
		r.Lines = append(r.Lines, Found{e.Time, e.Line, c.String()})
	}
}

// searchLines finds the lines of a query without a path.
func searchLines(ctx context.Context, s *scan, f *filter, c cursor) (*Result, error) {
	r, size := &Result{}, 0
	s.needles = f.needles
	s.match = func(line []byte) bool {
		var e Entry
		return json.Unmarshal(line, &e) == nil && f.selects(&e)
	}
	s.found = func(line []byte, at position) bool {
		when, _ := timeOf(line)
		r.Lines = append(r.Lines, Found{when, bytes.Clone(line), cursor{position: at}.String()})
		size += len(line)
		return len(r.Lines) < f.limit && size <= maxFoundBytes
	}
	stopped, complete, err := s.run(ctx, c.position)
	if err != nil {
		return nil, err
	}
	r.Complete = complete
	if !complete {
		r.Next, r.Until = cursor{position: stopped}.String(), s.timeAt(stopped)
	}
	return r, nil
}

// timeAt returns the time of the line at a position, or the zero time.
func (s *scan) timeAt(p position) time.Time {
	at := slices.IndexFunc(s.files, func(f *logFile) bool { return f.id == p.File })
	switch {
	case at < 0:
		return time.Time{}
	case p.Offset < s.files[at].size && !s.files[at].compressed():
		file, err := os.Open(s.files[at].name)
		if err != nil {
			return time.Time{}
		}
		defer file.Close()
		head := make([]byte, headSize)
		n, _ := file.ReadAt(head, p.Offset)
		when, _ := timeOf(head[:n])
		return when
	case at > 0:
		return s.files[at-1].first
	}
	return time.Time{}
}

// A filter is a query in the form of the lines.
type filter struct {
	Query

	limit   int
	network netip.Prefix // of Address
	needles [][]byte     // texts that the selected lines contain
}

func newFilter(q Query) (*filter, error) {
	f := &filter{Query: q, limit: cmp.Or(q.Limit, DefaultLimit)}
	if f.limit < 1 || f.limit > MaxLimit {
		return nil, &QueryError{fmt.Sprintf("invalid limit %d: want 1 to %d", q.Limit, MaxLimit)}
	}
	for _, text := range []*string{&f.User, &f.Tenant, &f.Path, &f.Outcome} {
		*text = written(*text)
	}
	if q.Address != "" {
		var err error
		if f.network, err = parseNetwork(q.Address); err != nil {
			return nil, &QueryError{fmt.Sprintf("invalid address %q: want an address or a network, such as 203.0.113.7 "+
				"or 203.0.113.0/24", q.Address)}
		}
		if f.network.IsSingleIP() && f.network.Addr().Is4() {
			f.needles = append(f.needles, []byte(f.network.Addr().String()))
		}
	}
	if f.User != "" {
		name, _, _ := strings.Cut(f.User, "@")
		f.needles = append(f.needles, bytes.TrimSuffix(encoded(name), []byte(`"`)))
	}
	if f.Tenant != "" {
		f.needles = append(f.needles, append([]byte(`"tenant":`), encoded(f.Tenant)...))
	}
	if len(q.Events) == 1 {
		f.needles = append(f.needles, append([]byte(`"event":`), encoded(q.Events[0])...))
	}
	if f.Outcome != "" {
		f.needles = append(f.needles, append([]byte(`"outcome":`), encoded(f.Outcome)...))
	}
	return f, nil
}

// parseNetwork parses an address, with or without a port, or a network.
func parseNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	if addr, err := netip.ParseAddrPort(text); err == nil {
		return parseNetwork(addr.Addr().String())
	}
	network, err := netip.ParsePrefix(text)
	return network.Masked(), err
}

// encoded returns a text as a JSON string, in the form that it has in a line.
func encoded(text string) []byte {
	var line bytes.Buffer
	h := slog.NewJSONHandler(&line, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key != "text" {
			return slog.Attr{}
		}
		return report.Escape(nil, a)
	}})
	slog.New(h).Info("", "text", text)
	return bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(line.Bytes()), []byte(`{"text":`)), []byte("}"))
}

// written returns a text as a reader of the lines sees it: invalid UTF-8 is replaced, and unprintable characters are
// escaped.
func written(text string) (seen string) {
	_ = json.Unmarshal(encoded(text), &seen) // encoded returns valid JSON
	return seen
}

func (f *filter) ofTenant(e *Entry) bool { return f.Tenant == "" || e.Tenant == f.Tenant }

// selects reports whether the filter selects an entry, whatever its path is.
func (f *filter) selects(e *Entry) bool {
	switch {
	case e.Event == "" || e.Time.IsZero(), !f.ofTenant(e):
	case !f.From.IsZero() && e.Time.Before(f.From), !f.To.IsZero() && e.Time.After(f.To):
	case f.User != "" && e.User != f.User && e.User+"@"+e.Tenant != f.User && e.Administrator != f.User:
	case f.Outcome != "" && e.Outcome != f.Outcome, len(f.Events) > 0 && !slices.Contains(f.Events, e.Event):
	case f.network.IsValid() && !f.overlaps(e.Client) && !f.overlaps(e.Banned):
	default:
		return true
	}
	return false
}

// overlaps reports whether an address or network of a line shares addresses with the filter.
func (f *filter) overlaps(text string) bool {
	network, err := parseNetwork(text)
	return err == nil && network.Overlaps(f.network)
}
