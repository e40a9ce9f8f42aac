package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	// maxRenamed limits the bytes of the renames that a search holds in memory.
	maxRenamed = 32 << 20
	// renameSize is the size of a rename without the bytes of the URIs.
	renameSize = 56
	// maxNames limits the names of the files that a search follows.
	maxNames = 2000
	// maxRoots limits the remembered prefixes of URIs.
	maxRoots = 10_000
)

// searchPath finds the lines of a query with a path, in the part of the log before a cursor that fits the budget. It
// reads this part twice: first for renames, copies and restores, from which follow all names of the file, and then for
// the lines about these names. All pages of a part begin at the same position, so that they have the same names.
func searchPath(ctx context.Context, s *scan, f *filter, c cursor) (*Result, error) {
	if c.File == "" && len(s.files) > 0 {
		c.position = position{s.files[0].id, s.files[0].end()} // lines that are added later are not part of it
	}
	if f.Tenant != "" {
		s.needles = [][]byte{append([]byte(`"tenant":`), encoded(f.Tenant)...)}
	}
	s.needles, s.unordered = append(s.needles, []byte(`"s3_uri":"`)), true
	names := &nameSearch{places: newPlaces(f.Path), roots: map[string]bool{}}
	s.match, s.found = func([]byte) bool { return true }, func(line []byte, _ position) bool { return names.read(line) }
	end, complete, err := s.run(ctx, c.position)
	if err != nil {
		return nil, err
	}
	if !names.close(c.Names) {
		s.problems = append(s.problems, fmt.Sprintf("there are more than %d names; search for a file", maxNames))
	}
	second := *s
	second.budget = &budget{bytes: math.MaxInt64, read: 1, deadline: s.budget.deadline.Add(time.Hour)} // the same bytes
	if !complete {
		second.end = &end
	}
	entries, size := []Entry{}, 0
	second.match, second.unordered, second.keep = names.touches, false, math.MaxInt
	second.found = func(line []byte, _ position) bool {
		var e Entry
		if json.Unmarshal(line, &e) == nil && f.ofTenant(&e) {
			e.Line = bytes.Clone(line)
			entries, size = append(entries, e), size+len(line)
		}
		return size <= maxKept
	}
	stopped, _, err := second.run(ctx, c.position)
	if err != nil {
		return nil, err
	}
	if stopped != end { // entries has no room for the rest
		end, complete = stopped, false
	}
	s.budget.read += second.budget.read - 1
	r := &Result{}
	r.page(f, follow(entries, append(slices.Clone(names.places.all), c.Names...)), c)
	if r.Complete = complete && r.Next == ""; !r.Complete && r.Next == "" {
		r.Next, r.Until = cursor{position: end, Names: names.first(maxCursorNames)}.String(), s.timeAt(end)
	}
	return r, nil
}

// A nameSearch finds all names of a file.
type nameSearch struct {
	places  *places
	roots   map[string]bool // parts of URIs before the pathname
	renames []rename
	size    int // of renames

	names     map[string]bool
	ancestors map[string]bool // directories above names
}

// A rename is a rename, copy or restore, with the URIs of the line.
type rename struct {
	at       time.Time
	from, to string
}

// read learns from a line. It returns false if the memory is full.
func (n *nameSearch) read(line []byte) bool {
	path, escaped := rawIn(line, `"path":"`)
	uri, _ := rawIn(line, `"s3_uri":"`)
	if root, ok := bytes.CutSuffix(uri, path); escaped || !ok || !n.roots[string(root)] {
		if ok && !escaped && len(n.roots) < maxRoots {
			n.roots[string(root)] = true
		}
		n.learn(line, `"path":"`, `"s3_uri":"`)
	}
	to, _ := rawIn(line, `"to_s3_uri":"`)
	if to == nil {
		return true
	}
	n.learn(line, `"to_path":"`, `"to_s3_uri":"`)
	at, _ := timeOf(line)
	n.renames = append(n.renames, rename{at, string(uri), string(to)})
	n.size += len(uri) + len(to) + renameSize
	return n.size < maxRenamed
}

func (n *nameSearch) learn(line []byte, pathKey, uriKey string) {
	path, _ := stringIn(line, pathKey)
	uri, _ := stringIn(line, uriKey)
	n.places.learn(path, uri)
}

// close finds the names that follow from the renames: later ones in the order of time, and earlier ones in the opposite
// order. It finds more names than [Follow], because it does not know when another file got the same name. others are
// names from newer parts of the log. It returns false if there are too many names.
func (n *nameSearch) close(others []string) (all bool) {
	for i := range n.renames {
		r := &n.renames[i]
		r.from, r.to = place(r.from), place(r.to)
	}
	slices.SortStableFunc(n.renames, func(a, b rename) int { return a.at.Compare(b.at) })
	start := append(slices.Clone(n.places.all), others...)
	n.begin(start)
	for _, r := range n.renames {
		n.apply(r.from, r.to)
	}
	later := n.names
	n.begin(start)
	for _, r := range slices.Backward(n.renames) {
		n.apply(r.to, r.from)
	}
	all = len(later) < maxNames && len(n.names) < maxNames
	for name := range later {
		n.add(name)
	}
	return all
}

// begin replaces the names.
func (n *nameSearch) begin(names []string) {
	n.names, n.ancestors = map[string]bool{}, map[string]bool{}
	for _, name := range names {
		n.add(name)
	}
}

// apply adds the names that files have after a move.
func (n *nameSearch) apply(from, to string) {
	if n.ancestors[from] { // a directory
		for _, name := range moves(slices.Collect(maps.Keys(n.names)), from, to) {
			n.add(name)
		}
	}
	if n.concerns(from, false) {
		n.add(to)
	}
}

func (n *nameSearch) add(name string) {
	if len(n.names) >= 2*maxNames {
		return
	}
	n.names[name] = true
	for dir := parent(name); dir != "" && !n.ancestors[dir]; dir = parent(dir) {
		n.ancestors[dir] = true
	}
}

// parent returns the URI of the directory above a URI, or an empty string for a bucket.
func parent(uri string) string {
	at := strings.LastIndexByte(uri, '/')
	if at <= len("s3://") {
		return ""
	}
	return uri[:at]
}

// concerns reports whether a URI is one of the names, or below one of them, or, with whole, above one of them.
func (n *nameSearch) concerns(uri string, whole bool) bool {
	if whole && n.ancestors[uri] {
		return true
	}
	for at := uri; at != ""; at = parent(at) {
		if n.names[at] {
			return true
		}
	}
	return false
}

// touches reports whether a line is about one of the names, or about a directory above one.
func (n *nameSearch) touches(line []byte) bool {
	for _, key := range []string{`"s3_uri":"`, `"to_s3_uri":"`} {
		if uri, ok := stringIn(line, key); ok && n.concerns(place(uri), true) {
			return true
		}
	}
	return false
}

// first returns the first names that have at most this number of bytes together.
func (n *nameSearch) first(bytes int) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		if bytes -= len(name); bytes >= 0 {
			names = append(names, name)
		}
	}
	return names
}
