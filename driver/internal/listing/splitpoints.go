package listing

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// splitEntries is how many entries lie between two split points: somewhat less than a page has, so that a page brings them all although some
	// have come.
	splitEntries = pageEntries * 95 / 100

	// maxSplitPointBytes bounds the split points that are remembered of all directories of a server, in bytes.
	maxSplitPointBytes = 1 << 20
)

// splitPoints are keys of a directory in order, about a page apart, where it was seen whole. The last is no key, and comes after all others.
type splitPoints []string

// after returns the mark that follows a key, or false where there is none.
func (m splitPoints) after(key string) (string, bool) {
	i, found := slices.BinarySearch(m, key)
	if found {
		i++
	}
	if i == len(m) {
		return "", false
	}
	return m[i], true
}

// A recorder records the split points of a directory as its pages are read.
type recorder struct {
	points     splitPoints
	entries    int  // after the last mark
	disordered bool // some page is
}

// add looks at the page that follows. A mark is never a directory, whose slash would be behind the prefix, but its name.
func (m *recorder) add(prefix string, p *s3api.Page) {
	m.disordered = m.disordered || !inOrder(p)
	entries := len(p.Versions) + len(p.Prefixes)
	var sorted []string
	for at := splitEntries - m.entries; at <= entries; at += splitEntries {
		if sorted == nil {
			sorted = names(p, prefix)
		}
		if at <= len(sorted) { // the marker of the directory has no name
			m.points = append(m.points, strings.Clone(sorted[at-1])) // which else would hold the whole answer in memory
		}
		m.entries -= splitEntries
	}
	m.entries += entries
}

// end returns the split points of a directory with the prefix. A single page needs none, and where keys are in no order there are none.
func (m *recorder) end(prefix string) splitPoints {
	single := len(m.points) == 0 || len(m.points) == 1 && m.entries <= pageEntries-splitEntries
	if single || m.disordered || !slices.IsSorted(m.points) {
		return nil
	}
	return append(m.points, prefix+string(utf8.MaxRune))
}

// A listedPrefix is a directory of a bucket.
type listedPrefix struct{ bucket, prefix string }

// SplitPointCache are the split points of directories that were listed recently. What others do meanwhile makes them worse, never wrong: nothing depends
// on them but time.
type SplitPointCache struct {
	mu     sync.Mutex
	places map[listedPrefix]splitPoints
	bytes  int
}

// at returns the split points of a directory, nil where none are known.
func (b *SplitPointCache) at(place listedPrefix) splitPoints {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.places[place]
}

// put remembers the split points of a directory, or forgets them where there are none. Others make room for them.
func (b *SplitPointCache) put(place listedPrefix, m splitPoints) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(place)
	size := m.size()
	if len(m) == 0 || size > maxSplitPointBytes {
		return
	}
	for other := range b.places {
		if b.bytes+size <= maxSplitPointBytes {
			break
		}
		b.drop(other)
	}
	if b.places == nil {
		b.places = map[listedPrefix]splitPoints{}
	}
	b.places[place] = m
	b.bytes += size
}

func (b *SplitPointCache) drop(place listedPrefix) {
	b.bytes -= b.places[place].size()
	delete(b.places, place)
}

// size is about what the split points take, in bytes.
func (m splitPoints) size() int {
	const header = 16 // of a string
	size := 0
	for _, mark := range m {
		size += header + len(mark)
	}
	return size
}
