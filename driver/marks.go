package driver

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// markEntries is how many entries lie between two marks: somewhat less than a page has, so that a page brings them all although some
	// have come.
	markEntries = pageEntries * 95 / 100

	// maxMarkBytes bounds the marks that are remembered of all directories of a server, in bytes.
	maxMarkBytes = 1 << 20
)

// marks are keys of a directory in order, about a page apart, where it was seen whole. The last is no key, and comes after all others.
type marks []string

// after returns the mark that follows a key, or false where there is none.
func (m marks) after(key string) (string, bool) {
	i, found := slices.BinarySearch(m, key)
	if found {
		i++
	}
	if i == len(m) {
		return "", false
	}
	return m[i], true
}

// A marker sets the marks of a directory as its pages are read.
type marker struct {
	marks      marks
	entries    int  // after the last mark
	disordered bool // some page is
}

// add looks at the page that follows. A mark is never a directory, whose slash would be behind the prefix, but its name.
func (m *marker) add(prefix string, p *s3api.Page) {
	m.disordered = m.disordered || !p.InOrder()
	entries := len(p.Versions) + len(p.Prefixes)
	var names []string
	for at := markEntries - m.entries; at <= entries; at += markEntries {
		if names == nil {
			names = p.Names(prefix)
		}
		if at <= len(names) { // the marker of the directory has no name
			m.marks = append(m.marks, strings.Clone(names[at-1])) // which else would hold the whole answer in memory
		}
		m.entries -= markEntries
	}
	m.entries += entries
}

// end returns the marks of a directory with the prefix. A single page needs none, and where keys are in no order there are none.
func (m *marker) end(prefix string) marks {
	single := len(m.marks) == 0 || len(m.marks) == 1 && m.entries <= pageEntries-markEntries
	if single || m.disordered || !slices.IsSorted(m.marks) {
		return nil
	}
	return append(m.marks, prefix+string(utf8.MaxRune))
}

// A markedPlace is a directory of a bucket.
type markedPlace struct{ bucket, prefix string }

// bookmarks are the marks of directories that were listed lately. What others do meanwhile makes them worse, never wrong: nothing depends
// on them but time.
type bookmarks struct {
	mu     sync.Mutex
	places map[markedPlace]marks
	bytes  int
}

// at returns the marks of a directory, nil where none are known.
func (b *bookmarks) at(place markedPlace) marks {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.places[place]
}

// put remembers the marks of a directory, or forgets them where there are none. Others make room for them.
func (b *bookmarks) put(place markedPlace, m marks) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(place)
	size := m.size()
	if len(m) == 0 || size > maxMarkBytes {
		return
	}
	for other := range b.places {
		if b.bytes+size <= maxMarkBytes {
			break
		}
		b.drop(other)
	}
	if b.places == nil {
		b.places = map[markedPlace]marks{}
	}
	b.places[place] = m
	b.bytes += size
}

func (b *bookmarks) drop(place markedPlace) {
	b.bytes -= b.places[place].size()
	delete(b.places, place)
}

// size is about what the marks take, in bytes.
func (m marks) size() int {
	const header = 16 // of a string
	size := 0
	for _, mark := range m {
		size += header + len(mark)
	}
	return size
}
