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
func (s splitPoints) after(key string) (string, bool) {
	i, found := slices.BinarySearch(s, key)
	if found {
		i++
	}
	if i == len(s) {
		return "", false
	}
	return s[i], true
}

// A recorder records the split points of a directory as its pages are read.
type recorder struct {
	points     splitPoints
	entries    int  // after the last mark
	disordered bool // some page is
}

// add looks at the page that follows. A mark is never a directory, whose slash would be behind the prefix, but its name.
func (r *recorder) add(prefix string, p *s3api.Page) {
	r.disordered = r.disordered || !inOrder(p)
	entries := len(p.Versions) + len(p.Prefixes)
	var sorted []string
	for at := splitEntries - r.entries; at <= entries; at += splitEntries {
		if sorted == nil {
			sorted = names(p, prefix)
		}
		if at <= len(sorted) { // the marker of the directory has no name
			r.points = append(r.points, strings.Clone(sorted[at-1])) // which else would hold the whole answer in memory
		}
		r.entries -= splitEntries
	}
	r.entries += entries
}

// end returns the split points of a directory with the prefix. A single page needs none, and where keys are in no order there are none.
func (r *recorder) end(prefix string) splitPoints {
	single := len(r.points) == 0 || len(r.points) == 1 && r.entries <= pageEntries-splitEntries
	if single || r.disordered || !slices.IsSorted(r.points) {
		return nil
	}
	return append(r.points, prefix+string(utf8.MaxRune))
}

// A listedPrefix is a directory of a bucket.
type listedPrefix struct{ bucket, prefix string }

// SplitPointCache are the split points of directories that were listed recently. What others do meanwhile makes them worse, never wrong: nothing depends
// on them but time.
type SplitPointCache struct {
	mu       sync.Mutex
	byPrefix map[listedPrefix]splitPoints
	bytes    int
}

// get returns the split points of a directory, nil where none are known.
func (c *SplitPointCache) get(place listedPrefix) splitPoints {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byPrefix[place]
}

// put remembers the split points of a directory, or forgets them where there are none. Others make room for them.
func (c *SplitPointCache) put(place listedPrefix, m splitPoints) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(place)
	size := m.size()
	if len(m) == 0 || size > maxSplitPointBytes {
		return
	}
	for other := range c.byPrefix {
		if c.bytes+size <= maxSplitPointBytes {
			break
		}
		c.drop(other)
	}
	if c.byPrefix == nil {
		c.byPrefix = map[listedPrefix]splitPoints{}
	}
	c.byPrefix[place] = m
	c.bytes += size
}

func (c *SplitPointCache) drop(place listedPrefix) {
	c.bytes -= c.byPrefix[place].size()
	delete(c.byPrefix, place)
}

// size is about what the split points take, in bytes.
func (s splitPoints) size() int {
	const header = 16 // of a string
	size := 0
	for _, mark := range s {
		size += header + len(mark)
	}
	return size
}
