package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/report"
)

// An Entry is a line of the audit log about a file or directory.
type Entry struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	Outcome string    `json:"outcome"`
	Tenant  string    `json:"tenant"`
	User    string    `json:"user"`
	Client  string    `json:"client"`
	Command string    `json:"command"`
	Path    string    `json:"path"`
	URI     string    `json:"s3_uri"`
	ToPath  string    `json:"to_path"`
	ToURI   string    `json:"to_s3_uri"`

	Administrator string `json:"administrator"`
	Banned        string `json:"banned"`

	Line json.RawMessage `json:"-"` // the original line
}

// maxEntry limits the bytes of a line. Pathnames have at most some kilobytes.
const maxEntry = 1 << 20

// ReadEntries returns the lines of an audit log since a time that name a file or directory, in the order of the log,
// and the number of lines that are not audit lines. A line may also be an array of lines, as a webhook receives it.
func ReadEntries(in io.Reader, since time.Time) (entries []Entry, skipped int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxEntry*2)
	for lines.Scan() {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		all := []json.RawMessage{text}
		if text[0] == '[' && json.Unmarshal(text, &all) != nil {
			skipped++
			continue
		}
		for _, one := range all {
			e := Entry{}
			switch {
			case json.Unmarshal(one, &e) != nil || e.Event == "" || e.Time.IsZero():
				skipped++
			case e.Path != "" && !e.Time.Before(since):
				e.Line = bytes.Clone(one)
				entries = append(entries, e)
			}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return entries, skipped, fmt.Errorf("not an audit log: a line has more than %d bytes", 2*maxEntry)
	}
	return entries, skipped, lines.Err()
}

// Follow returns the entries about a file, or about a directory and everything below it, sorted by time. name is the
// pathname as a user sees it, or the URI of the object. Follow tracks the file through renames of the file and its
// parent directories, copies and restores, both forward in time and backward.
func Follow(entries []Entry, name string) []Entry {
	p := newPlaces(name)
	for i := range entries {
		p.learn(entries[i].Path, entries[i].URI)
		p.learn(entries[i].ToPath, entries[i].ToURI)
	}
	return follow(entries, p.all)
}

// follow returns the entries about the files at some places.
func follow(entries []Entry, requested []string) []Entry {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	about := make([]bool, len(entries))
	forward := trail{requested: requested, live: slices.Clone(requested)}
	for i := range entries {
		about[i] = forward.step(&entries[i], false)
	}
	backward := trail{requested: requested, live: slices.Clone(requested)}
	for i := range slices.Backward(entries) {
		about[i] = backward.step(&entries[i], true) || about[i]
	}
	var found []Entry
	for i, e := range entries {
		if about[i] {
			found = append(found, e)
		}
	}
	return found
}

// place returns the canonical form of a URI or pathname for comparisons.
func place(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil && strings.HasPrefix(text, "s3://") {
		text = decoded
	}
	return norm.NFC.String(strings.TrimRight(text, "/"))
}

// below returns the part of name after dir. ok is true if name is dir or below it.
func below(name, dir string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, dir)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// places are the objects that a name may refer to. Users with different roots see different objects under the same
// pathname. An entry about one pathname also shows where the pathnames below and next to it are stored.
type places struct {
	wanted string // pathname
	given  bool   // the name was the URI of an object, so that there is only one place
	all    []string
}

func newPlaces(name string) *places {
	if strings.HasPrefix(name, "s3://") {
		return &places{given: true, all: []string{place(name)}}
	}
	return &places{wanted: place("/" + strings.TrimLeft(name, "/"))}
}

// learn adds the places that follow from a pathname and its object.
func (p *places) learn(path, uri string) {
	if uri == "" || p.given {
		return
	}
	seen, object := place(path), place(uri)
	at := ""
	if rest, ok := below(p.wanted, seen); ok {
		at = object + rest
	} else if root, ok := strings.CutSuffix(object, seen); ok {
		at = root + p.wanted
	}
	if at != "" && !slices.Contains(p.all, at) {
		p.all = append(p.all, at)
	}
}

// A trail tracks the places of a file while the entries are read in one direction.
type trail struct {
	requested []string // places that the caller named; all entries about them count
	live      []string // current places of the file and its copies
	// past holds places where a restore can find the file after it is gone: its previous places when reading forward,
	// and the places of restored versions when reading backward.
	past []string
}

// step reports whether an entry is about the file, and updates the places.
func (t *trail) step(e *Entry, backward bool) (about bool) {
	from, to := place(e.URI), place(e.ToURI)
	removes := e.Event == string(report.Delete) || e.Event == string(report.RemoveDir)
	restores := e.Event == string(report.Restore)
	if backward && removes { // the removed file was another one, unless it is the file that was restored later
		t.leave(from, t.past)
	}
	places := slices.Clone(t.live)
	if restores && !backward {
		places = append(places, t.past...)
	}
	about = t.touches(places, from, e) || e.ToURI != "" && t.touches(places, to, e)
	switch {
	case e.Outcome != outcomeOK:
	case e.ToURI != "" && backward:
		t.leave(to, nil)
		moved := moves(places, to, from)
		t.arrive(moved...)
		if restores {
			t.past = append(t.past, moved...)
		}
	case e.ToURI != "":
		if e.Event == string(report.Rename) {
			t.past = append(t.past, t.leave(from, nil)...)
		}
		t.arrive(moves(places, from, to)...)
	case removes && !backward:
		t.past = append(t.past, t.leave(from, nil)...)
	}
	if e.Outcome == outcomeOK {
		t.arriveAt(e, from, to, backward)
	}
	return about
}

// touches reports whether an entry about a place concerns the file. A change of a parent directory concerns the file if
// it moves or removes the contents of the directory.
func (t *trail) touches(places []string, at string, e *Entry) bool {
	whole := e.ToURI != "" || strings.HasPrefix(e.Command, "SITE")
	return slices.ContainsFunc(t.requested, func(asked string) bool { _, ok := below(at, asked); return ok }) ||
		slices.ContainsFunc(places, func(live string) bool {
			_, inside := below(at, live)
			_, above := below(live, at)
			return inside || above && whole
		})
}

// moves returns the new places of files after a move or copy.
func moves(places []string, from, to string) (next []string) {
	for _, at := range places {
		if rest, ok := below(at, from); ok {
			next = append(next, to+rest)
		} else if _, inside := below(from, at); inside { // a file in the directory
			next = append(next, to)
		}
	}
	return next
}

// arriveAt adds a place that the caller asked about, if an entry shows that a file is there: because it was stored or
// moved there or, when reading backward, removed or moved away.
func (t *trail) arriveAt(e *Entry, from, to string, backward bool) {
	at := from
	switch {
	case e.ToURI != "" && !backward:
		at = to
	case e.ToURI == "" && !backward && e.Event != string(report.Upload):
		return
	}
	for _, asked := range t.requested {
		if _, ok := below(asked, at); ok {
			t.arrive(asked)
		}
	}
}

// leave removes a place and everything below it, except places in keep, and returns what it removed.
func (t *trail) leave(place string, keep []string) (left []string) {
	t.live = slices.DeleteFunc(t.live, func(live string) bool {
		_, inside := below(live, place)
		gone := inside && !slices.Contains(keep, live)
		if gone {
			left = append(left, live)
		}
		return gone
	})
	return left
}

// arrive adds places.
func (t *trail) arrive(places ...string) {
	for _, at := range places {
		if !slices.Contains(t.live, at) {
			t.live = append(t.live, at)
		}
	}
}
