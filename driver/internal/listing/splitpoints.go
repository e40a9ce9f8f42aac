package listing

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// splitEntries is the number of entries between two split points. It is slightly less than a page, so that one page
	// still contains them all after some entries have been added.
	splitEntries = pageEntries * 95 / 100

	// maxSplitPointBytes is the maximum total size in bytes of the split points of all directories of a server.
	maxSplitPointBytes = 1 << 20
)

// splitPoints are keys of a directory, in order and slightly less than a page apart. The last one is not a key but a
// bound after all keys.
type splitPoints []string

// after returns the first split point after a key, or false if no split point follows.
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

// A recorder records the split points of a directory while its pages are read.
type recorder struct {
	points     splitPoints
	entries    int  // since the last split point
	disordered bool // a page was not in order
}

// add adds the next page. If a split point is a directory, its trailing slash is removed.
func (r *recorder) add(prefix string, p *s3api.Page) {
	r.disordered = r.disordered || !inOrder(p)
	entries := len(p.Versions) + len(p.Prefixes)
	var sorted []string
	for at := splitEntries - r.entries; at <= entries; at += splitEntries {
		if sorted == nil {
			sorted = names(p, prefix)
		}
		if at <= len(sorted) { // sorted is shorter than the page if it had the marker of the directory
			r.points = append(r.points, strings.Clone(sorted[at-1])) // so that the response can be freed
		}
		r.entries -= splitEntries
	}
	r.entries += entries
}

// end returns the split points of the directory with this prefix. It returns nil for a single page and for pages that
// are not in order.
func (r *recorder) end(prefix string) splitPoints {
	single := len(r.points) == 0 || len(r.points) == 1 && r.entries <= pageEntries-splitEntries
	if single || r.disordered || !slices.IsSorted(r.points) {
		return nil
	}
	return append(r.points, prefix+string(utf8.MaxRune))
}

// A listedPrefix identifies a directory of a bucket.
type listedPrefix struct{ bucket, prefix string }

// A SplitPointCache contains the split points of recently listed directories. If other clients change a directory, the
// next listing may be slower but is still correct.
type SplitPointCache struct {
	mu       sync.Mutex
	byPrefix map[listedPrefix]splitPoints
	bytes    int
}

// get returns the split points of a directory, or nil if they are unknown.
func (c *SplitPointCache) get(dir listedPrefix) splitPoints {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byPrefix[dir]
}

// put stores the split points of a directory, or removes them if s is empty. It evicts other directories if the cache
// is full.
func (c *SplitPointCache) put(dir listedPrefix, s splitPoints) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(dir)
	size := s.size()
	if len(s) == 0 || size > maxSplitPointBytes {
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
	c.byPrefix[dir] = s
	c.bytes += size
}

func (c *SplitPointCache) drop(dir listedPrefix) {
	c.bytes -= c.byPrefix[dir].size()
	delete(c.byPrefix, dir)
}

// size returns the approximate memory in bytes that the split points use.
func (s splitPoints) size() int {
	const header = 16 // size of a string header
	size := 0
	for _, point := range s {
		size += header + len(point)
	}
	return size
}
