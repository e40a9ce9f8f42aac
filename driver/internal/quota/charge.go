package quota

import (
	"strings"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// maxCharges is how many keys a quota remembers that no operation changes at the moment, in about 2 MB. Of a key
	// that it has forgotten, it subtracts nothing if the object is younger than the last count.
	maxCharges = 10_000

	// dateMargin is how long before a count an object must be dated, so that the count has it for certain. The clocks
	// of S3's machines differ, and a request takes a while. partsMargin is the same for an object of several parts,
	// which AWS dates from when its upload began.
	dateMargin  = time.Minute
	partsMargin = 24 * time.Hour
)

// A charge is how many bytes of one key the sum of a quota has. Changes of the same key at the same time share it, so
// that what one of them subtracts no other one subtracts again. The mutex of the quota guards it.
type charge struct {
	size  int64 // Bytes that the sum has.
	known bool  // Whether it has no more than these.
	least int64 // Bytes that a request of which no answer came may store at any time.

	open    int               // Changes under way.
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

// room is how many bytes the uploads need besides those that the sum has. Only one of them stays, so it is what the
// largest needs.
func (c *charge) room() int64 {
	var largest int64
	for _, size := range c.wants {
		largest = max(largest, size)
	}
	return max(0, largest-c.size)
}

// settled tells from the date of an object whether a listing that began then must have it. S3 shows what it has
// acknowledged.
func settled(v s3api.Version, begun time.Time) bool {
	margin := dateMargin
	if strings.Contains(v.ETag, "-") { // that of an object of several parts
		margin = partsMargin
	}
	return v.ModTime.Before(begun.Add(-margin))
}

// enter begins a change of a key.
func (q *Quota) enter(key string) *charge {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.charges[key]
	if c == nil {
		q.forget()
		c = &charge{}
		q.charges[key] = c
	}
	c.open++
	return c
}

// forget makes room for another key.
func (q *Quota) forget() {
	if len(q.charges) < maxCharges {
		return
	}
	for key, c := range q.charges {
		if c.open == 0 {
			delete(q.charges, key)
		}
		if len(q.charges) <= maxCharges/2 {
			return
		}
	}
}

// saw says what a look has found. The zero version stands for no object, and only for a look after the change began.
// Where nothing else is known of the key, the sum has the object if the last count must have found it. So the object
// is older than the count, and was seen after it. One that was seen before the count ended may have been deleted
// before the count came to it.
func (q *Quota) saw(c *charge, v s3api.Version) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.known {
		return
	}
	c.known = true
	if v.Key != "" && settled(v, q.begun) && !v.Seen.Before(q.counted) {
		before := c.room()
		c.size = Charged(v.Key, v.Size)
		q.reserved += c.room() - before
	}
}

// grow takes room for an object of so many bytes, and returns false if there is not enough.
func (q *Quota) grow(c *charge, by *Change, size int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, wanted := c.room(), c.wants[by]
	if c.wants == nil {
		c.wants = map[*Change]int64{}
	}
	c.wants[by] = size
	more := c.room() - before
	if more > 0 && q.known && q.used+q.reserved+more > q.Limit() {
		c.wants[by] = wanted
		return false
	}
	q.reserved += more
	return true
}

// send says that S3 is about to get a request that stores so many bytes under the key.
func (q *Quota) send(c *charge, size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.sent == 0 {
		c.largest, c.sentIn = 0, q.round
	}
	c.sent++
	c.largest = max(c.largest, size)
}

// An outcome is what has become of a request.
type outcome int

const (
	notSent outcome = iota
	refused         // and changed nothing
	doubtful
	performed
)

// leave ends a change that wanted to store so many bytes.
func (q *Quota) leave(c *charge, by *Change, size int64, became outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := c.room()
	delete(c.wants, by)
	switch became {
	case performed: // what was there has gone, and what is there now is of this request or one that overlapped
		after := max(c.largest, c.least)
		if c.sentIn < q.settled { // or another client has stored it since, and the count has found that
			after = max(after, c.size)
		}
		q.set(c, after)
		if c.sentIn == q.round {
			c.changedIn = q.round
		}
	case doubtful:
		if c.least = max(c.least, size); c.least > c.size {
			q.set(c, c.least)
		}
	}
	if became != notSent {
		c.sent--
		c.endedIn = q.round
	}
	c.open--
	q.reserved += c.room() - before
}

// set changes how many bytes of a key the sum has.
func (q *Quota) set(c *charge, size int64) {
	q.used += size - c.size
	c.size, c.known = size, true
}
