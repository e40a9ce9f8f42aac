package quota

import (
	"strings"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// maxCharges is how many keys a usage remembers that no operation is changing, in about 2 MB. If it has forgotten a
	// key, it subtracts nothing for an object that is younger than the last count.
	maxCharges = 10_000

	// dateMargin is how long before a count an object must be dated, so that the count has it for certain. The clocks
	// of S3's machines differ, and a request takes a while. partsMargin is the same for an object of several parts,
	// which AWS dates from when its upload began.
	dateMargin  = time.Minute
	partsMargin = 24 * time.Hour
)

// A charge is how many bytes of one key the sum of a usage has. Changes of the same key at the same time share it, so
// that no two of them subtract the same bytes. Its methods, and the methods of Usage in this file, need the lock of the
// table.
type charge struct {
	size  int64 // Bytes that the sum has.
	known bool  // Whether it has no more than these.
	least int64 // Bytes that a request without a response may store at any time.

	open    int               // Changes in progress.
	sent    int               // Their requests that S3 may be performing.
	largest int64             // What the largest of these stores, and of those that overlapped with them.
	wants   map[*Change]int64 // How large the object becomes by each upload.

	// Numbers of counts, each the last one that had begun at that time:
	sentIn    uint64 // When the first of the requests that overlap was sent.
	endedIn   uint64 // When the last request ended.
	changedIn uint64 // When a request was performed of which none that overlapped was sent before the count began.
	listedIn  uint64 // When a count found the object, with so many bytes.
	listed    int64
}

// room returns how many bytes the uploads need besides the bytes that the sum has. Only one of them stays, so the
// largest counts.
func (c *charge) room() int64 {
	var largest int64
	for _, size := range c.wants {
		largest = max(largest, size)
	}
	return max(0, largest-c.size)
}

// settled reports whether a listing that began then must have an object, by the date of the object. S3 lists what it
// has acknowledged.
func settled(v s3api.Version, begun time.Time) bool {
	margin := dateMargin
	if strings.Contains(v.ETag, "-") { // an object of several parts
		margin = partsMargin
	}
	return v.ModTime.Before(begun.Add(-margin))
}

// enter begins a change of a key.
func (u *Usage) enter(key string) *charge {
	c := u.charges[key]
	if c == nil {
		u.forget()
		c = &charge{}
		u.charges[key] = c
	}
	c.open++
	return c
}

// forget makes room for another key.
func (u *Usage) forget() {
	if len(u.charges) < maxCharges {
		return
	}
	for key, c := range u.charges {
		if c.open == 0 {
			delete(u.charges, key)
		}
		if len(u.charges) <= maxCharges/2 {
			return
		}
	}
}

// saw takes what a HEAD request has shown. The zero version stands for no object, and only if the request was sent
// after the change began. If nothing else is known of the key, the sum has the object if the last count must have
// found it: the object is older than the count, and was seen after it. An object that was seen before the count ended may have
// been deleted before its page was listed.
func (u *Usage) saw(c *charge, v s3api.Version) {
	if c.known {
		return
	}
	c.known = true
	if v.Key != "" && settled(v, u.begun) && !v.Seen.Before(u.counted) {
		before := c.room()
		c.size = Charged(v.Key, v.Size)
		u.reserved += c.room() - before
	}
}

// grow takes room for an object of so many bytes, and returns false if the sum would exceed the limit, unless that is
// noLimit.
func (u *Usage) grow(c *charge, by *Change, size, limit int64) bool {
	before, wanted := c.room(), c.wants[by]
	if c.wants == nil {
		c.wants = map[*Change]int64{}
	}
	c.wants[by] = size
	more := c.room() - before
	if more > 0 && u.known && limit != noLimit && u.used+u.reserved+more > limit {
		c.wants[by] = wanted
		return false
	}
	u.reserved += more
	return true
}

// send notes that S3 is about to get a request that stores so many bytes under the key.
func (u *Usage) send(c *charge, size int64) {
	if c.sent == 0 {
		c.largest, c.sentIn = 0, u.round
	}
	c.sent++
	c.largest = max(c.largest, size)
}

// An outcome is what a request has done.
type outcome int

const (
	notSent outcome = iota
	refused         // and changed nothing
	doubtful
	performed
)

// leave ends a change that wanted to store so many bytes.
func (u *Usage) leave(c *charge, by *Change, size int64, became outcome) {
	before := c.room()
	delete(c.wants, by)
	switch became {
	case performed: // the object is now that of this request, or of one that overlapped
		after := max(c.largest, c.least)
		if c.sentIn < u.settled { // or another client has stored it since, and the count has found it
			after = max(after, c.size)
		}
		u.set(c, after)
		if c.sentIn == u.round {
			c.changedIn = u.round
		}
	case doubtful:
		if c.least = max(c.least, size); c.least > c.size {
			u.set(c, c.least)
		}
	}
	if became != notSent {
		c.sent--
		c.endedIn = u.round
	}
	c.open--
	u.reserved += c.room() - before
}

// set changes how many bytes of a key the sum has.
func (u *Usage) set(c *charge, size int64) {
	u.used += size - c.size
	c.size, c.known = size, true
}
