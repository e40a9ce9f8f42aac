package listing

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// splitEntries is how many entries lie between two split points: somewhat less than a page has, so that a page
	// brings them all although some have come.
	splitEntries = pageEntries * 95 / 100

	// maxSplitPointBytes bounds the split points that are remembered of all directories of a server, in bytes.
	maxSplitPointBytes = 1 << 20
)

// splitPoints are keys of a directory in order, about a page apart, of a complete listing. The last one is no key,
// and comes after all others.
type splitPoints []string

// after returns the first split point after a key, or false where there is none.
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

// add looks at the next page. The split point for a directory is its name without the slash.
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

// end returns the split points of a directory with the prefix. There are none for a single page, nor for keys without
// an order.
func (r *recorder) end(prefix string) splitPoints {
	single := len(r.points) == 0 || len(r.points) == 1 && r.entries <= pageEntries-splitEntries
	if single || r.disordered || !slices.IsSorted(r.points) {
		return nil
	}
	return append(r.points, prefix+string(utf8.MaxRune))
}

// A listedPrefix is a directory of a bucket.
type listedPrefix struct{ bucket, prefix string }

// SplitPointCache holds the split points of directories that sessions have listed recently. Changes by other clients
// make a listing slower, never wrong.
type SplitPointCache struct {
	mu       sync.Mutex
	byPrefix map[listedPrefix]splitPoints
	bytes    int
}

// get returns the split points of a directory, nil where none are known.
func (c *SplitPointCache) get(dir listedPrefix) splitPoints {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byPrefix[dir]
}

// put stores the split points of a directory, or removes them if m is empty. To make room it removes those of other
// directories.
func (c *SplitPointCache) put(dir listedPrefix, m splitPoints) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(dir)
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
	c.byPrefix[dir] = m
	c.bytes += size
}

func (c *SplitPointCache) drop(dir listedPrefix) {
	c.bytes -= c.byPrefix[dir].size()
	delete(c.byPrefix, dir)
}

// size returns about how many bytes the split points take.
func (s splitPoints) size() int {
	const header = 16 // of a string
	size := 0
	for _, mark := range s {
		size += header + len(mark)
	}
	return size
}
