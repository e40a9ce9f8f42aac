// Package quota bounds how many bytes a part of a bucket holds. It counts them by ListObjectsV2, and uploads reserve
// room before they store.
//
// A [Quota] is shared by all file systems below a prefix. A [Change] is what an operation does to the bytes of one
// key in its [Quotas].
package quota

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/profile"
)

const (
	// recountFactor times the duration of a count must pass before an upload causes the next count, also after a
	// count that failed. Otherwise a client that repeats an upload would make S3 list the bucket all the time.
	recountFactor = 10

	// recountTimeout is how long an upload waits for such a count, in which S3 lists some hundred thousand objects.
	recountTimeout = 10 * time.Second
)

// A Quota bounds the bytes of all objects whose keys start with a prefix. All file systems that store such keys share
// one.
//
// S3 keeps no such sum. So [Quota.Count] lists the objects, by a request for each 1,000. In between a quota adds what
// its file systems store, and subtracts what they delete. Changes by other clients show with the next count. Until
// the first count has ended there is no bound. An upload reserves its room part by part, so that several uploads do
// not take the same room. The parts of interrupted uploads do not count, nor do their records in the upload journal.
//
// The sum is never too small for what this process knows. For each key that an operation changes, the quota remembers
// how many bytes of the key the sum has ([charge]), and it subtracts these and no others. So it subtracts nothing
// twice when several clients delete or replace the same file, and nothing that it has not counted. What remains in
// doubt stays in the sum until the next count.
//
// Before a quota refuses an upload it counts again, because other clients may have deleted objects. It does not if the
// last count was recent.
type Quota struct {
	bucket atomic.Pointer[s3api.Bucket]
	prefix string
	limit  atomic.Int64

	counting chan struct{} // a semaphore: only one goroutine counts

	// Of the last count, with or without an error. Only the goroutine that counts may use them.
	ended time.Time
	took  time.Duration

	mu       sync.Mutex
	used     int64              // The sum: by the last count, and what has changed since it began.
	reserved int64              // For uploads under way.
	known    bool               // A count has ended.
	begun    time.Time          // When the last count that gave the sum began, by the clock of S3.
	counted  time.Time          // When it ended, by the clock of this process.
	round    uint64             // Number of the last count that began.
	settled  uint64             // Number of the last count that gave the sum.
	charges  map[string]*charge // By key, at least those of operations under way.
}

// New returns a quota of limit bytes. It makes no request.
func New(client s3api.Client, bucketName, prefix string, limit int64) *Quota {
	q := &Quota{prefix: prefix, counting: make(chan struct{}, 1), charges: map[string]*charge{}}
	q.SetBucket(client, bucketName)
	q.limit.Store(limit)
	return q
}

// SetBucket makes the next counts by another client, which has other credentials for example. The objects must be the
// same.
func (q *Quota) SetBucket(client s3api.Client, bucketName string) {
	q.bucket.Store(s3api.NewBucket(client, bucketName, profile.Profile{}, &s3api.Stats{}, 0)) // it reads no object
}

// Limit returns the limit in bytes.
func (q *Quota) Limit() int64 { return q.limit.Load() }

// SetLimit sets the limit in bytes. What is stored and reserved stays, also above a lower limit.
func (q *Quota) SetLimit(limit int64) { q.limit.Store(limit) }

// Used returns how many bytes the objects have, at most. known is false before the first count.
func (q *Quota) Used() (bytes int64, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(0, q.used), q.known
}

// Count counts the bytes of all objects. After an error the quota keeps the previous count.
func (q *Quota) Count(ctx context.Context) error {
	_, err := q.count(ctx, false)
	return err
}

// count counts when no other goroutine does. It counts nothing if the last count is recent and spare is set.
func (q *Quota) count(ctx context.Context, spare bool) (counted bool, err error) {
	select {
	case q.counting <- struct{}{}:
		defer func() { <-q.counting }()
	case <-ctx.Done():
		return false, fmt.Errorf("wait until the objects of a quota are counted: %w", ctx.Err())
	}
	if spare && time.Since(q.ended) <= recountFactor*q.took {
		return false, nil
	}
	q.mu.Lock()
	q.round++
	q.mu.Unlock()
	begin := time.Now()
	all, err := q.list(ctx)
	q.ended, q.took = time.Now(), time.Since(begin)
	if err != nil {
		return false, err
	}
	q.settle(all)
	return true, nil
}

// A listed is what a count has found.
type listed struct {
	begun  time.Time        // by the clock of S3
	sum    int64            // of all objects
	recent map[string]int64 // sizes of objects so young that their dates do not tell that this count has them
}

// list lists all objects.
func (q *Quota) list(ctx context.Context) (listed, error) {
	l := listed{recent: map[string]int64{}}
	for page, err := range q.bucket.Load().Pages(ctx, s3api.Listing{Prefix: q.prefix}) {
		if err != nil {
			return listed{}, err
		}
		if l.begun.IsZero() {
			l.begun = page.Date.Add(-page.Took)
		}
		q.mu.Lock()
		for _, v := range page.Versions {
			size := Charged(v.Key, v.Size)
			l.sum += size
			if c := q.charges[v.Key]; c != nil {
				c.listedIn, c.listed = q.round, size
			} else if !settled(v, l.begun) && len(l.recent) < maxCharges {
				l.recent[v.Key] = size
			}
		}
		q.mu.Unlock()
	}
	return l, nil
}

// settle makes the sum that of a count. Of a key that an operation has changed since the count began, the listing may
// tell either state: the sum keeps what the operation knows. Where S3 may have performed the change before the count
// began, it takes the larger of both.
func (q *Quota) settle(l listed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used, q.known, q.begun, q.counted, q.settled, q.reserved = l.sum, true, l.begun, time.Now(), q.round, 0
	for key, c := range q.charges {
		var size int64
		if c.listedIn == q.round {
			size = c.listed
		}
		q.used -= size
		switch {
		case c.known && c.changedIn == q.round:
			// where the key came to be known after its page, the sum has both: rather too much than too little
		case c.sent > 0, c.endedIn == q.round:
			c.size, c.known = max(c.size, size), true
		default:
			c.size, c.known, c.least = size, true, 0
		}
		q.used += c.size
		q.reserved += c.room()
		if c.open == 0 && c.size == 0 && c.endedIn != q.round {
			delete(q.charges, key)
		}
	}
	for key, size := range l.recent {
		if q.charges[key] == nil && len(q.charges) < maxCharges {
			q.charges[key] = &charge{size: size, known: true}
		}
	}
}

// Charged returns how many bytes of an object count. The driver's own objects do not count, because users do not
// store them.
func Charged(key string, size int64) int64 {
	if s3object.IsReserved(key) {
		return 0
	}
	return size
}

// full tells whether there is no room for a single byte more.
func (q *Quota) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known && q.used+q.reserved >= q.Limit()
}
