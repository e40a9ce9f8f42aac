// Package quota counts the bytes that are stored below the prefixes of a bucket, and refuses uploads that would exceed
// a limit. It counts them by ListObjectsV2, and uploads reserve room before they store.
//
// A [Usage] is the sum of one prefix, and stands in the table [Usages] of the bucket. A [Limit] is a bound on a usage
// for some users. A [Change] is what an operation does to the bytes of one key in all usages that contain the key.
package quota

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

const (
	// recountFactor times the duration of a count must pass before an upload causes the next count, also after a
	// count that failed. Otherwise a client that repeats an upload would make S3 list the bucket all the time.
	recountFactor = 10

	// recountTimeout is how long an upload waits for a count, in which S3 lists some hundred thousand objects.
	recountTimeout = 10 * time.Second
)

// A Usage is how many bytes the objects have whose keys start with a prefix.
//
// S3 keeps no such sum. So [Usage.Count] lists the objects, by a request for each 1,000. In between a usage adds what
// the file systems of the process store, and subtracts what they delete. Changes by other clients show with the next
// count. Uploads wait for the first count until the usage is ten seconds old; then there is no bound until the count
// has ended. An upload reserves its room part by part, so that several uploads do not take the same room. The parts of
// interrupted uploads do not count, and neither do their records in the upload journal.
//
// The sum is never too small for what this process knows. For each key that an operation changes, the usage remembers
// how many bytes of the key the sum has ([charge]), and it subtracts these and no others. So it subtracts nothing
// twice when several clients delete or replace the same file, and nothing that it has not counted. What remains in
// doubt stays in the sum until the next count.
//
// Before a limit refuses an upload, the usage is counted again, because other clients may have deleted objects. It is
// not if the last count was recent.
type Usage struct {
	table  *Usages
	prefix string
	added  time.Time
	bucket atomic.Pointer[s3api.Bucket]

	counting chan struct{} // a semaphore: only one goroutine counts

	// Of the last count, with or without an error. Only the goroutine that counts may use them.
	ended time.Time
	took  time.Duration

	// The mutex of the table guards the rest.
	used     int64              // The sum: by the last count, and what has changed since it began.
	reserved int64              // For uploads in progress.
	known    bool               // A count has ended.
	begun    time.Time          // When the last count that gave the sum began, by the clock of S3.
	counted  time.Time          // When it ended, by the clock of this process.
	round    uint64             // Number of the last count that began.
	settled  uint64             // Number of the last count that gave the sum.
	due      time.Time          // When [Usage.Due] returns true again.
	asked    time.Time          // When [Usages.Of] last returned it.
	charges  map[string]*charge // By key, at least those of operations in progress.
}

// Used returns how many bytes the objects have, at most. known is false before the first count.
func (u *Usage) Used() (bytes int64, known bool) {
	u.table.mu.Lock()
	defer u.table.mu.Unlock()
	return max(0, u.used), u.known
}

// Due reports whether the caller must count the objects: once in each interval.
func (u *Usage) Due(interval time.Duration) bool {
	u.table.mu.Lock()
	defer u.table.mu.Unlock()
	now := time.Now()
	if now.Before(u.due) {
		return false
	}
	u.due = now.Add(interval)
	return true
}

// Count counts the bytes of all objects. After an error the usage keeps the previous count.
func (u *Usage) Count(ctx context.Context) error {
	_, err := u.count(ctx, func() bool { return true })
	return err
}

// await waits for the first count, and begins it if nobody else does. It waits no longer when the usage is old
// already, because a large bucket is being counted for minutes.
func (u *Usage) await(ctx context.Context) {
	if _, known := u.Used(); known || len(u.counting) > 0 && time.Since(u.added) > recountTimeout {
		return
	}
	ctx, done := context.WithTimeout(ctx, recountTimeout)
	defer done()
	_, _ = u.count(ctx, func() bool { // after an error there is no bound
		_, known := u.Used()
		return !known && u.mayRecount()
	})
}

// recount counts again for an upload that has no room, and reports whether it did.
func (u *Usage) recount(ctx context.Context) bool {
	ctx, done := context.WithTimeout(ctx, recountTimeout)
	defer done()
	counted, _ := u.count(ctx, u.mayRecount) // after an error the previous count holds
	return counted
}

// mayRecount reports whether the last count is old enough for an upload to cause another one. Only the goroutine that
// counts calls it.
func (u *Usage) mayRecount() bool { return time.Since(u.ended) > recountFactor*u.took }

// count counts if no other goroutine does and needed then returns true.
func (u *Usage) count(ctx context.Context, needed func() bool) (counted bool, err error) {
	select {
	case u.counting <- struct{}{}:
		defer func() { <-u.counting }()
	case <-ctx.Done():
		return false, fmt.Errorf("wait until the objects of a quota are counted: %w", ctx.Err())
	}
	if !needed() {
		return false, nil
	}
	u.table.mu.Lock()
	u.round++
	u.table.mu.Unlock()
	begin := time.Now()
	all, err := u.list(ctx)
	u.ended, u.took = time.Now(), time.Since(begin)
	if err != nil {
		return false, err
	}
	u.settle(all)
	return true, nil
}

// A listed is the result of a count.
type listed struct {
	begun  time.Time        // by the clock of S3
	sum    int64            // of all objects
	recent map[string]int64 // sizes of objects so young that their dates do not tell that this count has them
}

// list lists all objects.
func (u *Usage) list(ctx context.Context) (listed, error) {
	l := listed{recent: map[string]int64{}}
	for page, err := range u.bucket.Load().Pages(ctx, s3api.Listing{Prefix: u.prefix}) {
		if err != nil {
			return listed{}, err
		}
		if l.begun.IsZero() {
			l.begun = page.Date.Add(-page.Took)
		}
		u.table.mu.Lock()
		for _, v := range page.Versions {
			size := Charged(v.Key, v.Size)
			l.sum += size
			if c := u.charges[v.Key]; c != nil {
				c.listedIn, c.listed = u.round, size
			} else if !settled(v, l.begun) && len(l.recent) < maxCharges {
				l.recent[v.Key] = size
			}
		}
		u.table.mu.Unlock()
	}
	return l, nil
}

// settle takes the sum of a count. If an operation has changed a key since the count began, the listing may show
// either state, and the sum keeps what the operation knows. If S3 may have performed the change before the count
// began, the sum takes the larger of both.
func (u *Usage) settle(l listed) {
	u.table.mu.Lock()
	defer u.table.mu.Unlock()
	u.used, u.known, u.begun, u.counted, u.settled, u.reserved = l.sum, true, l.begun, time.Now(), u.round, 0
	for key, c := range u.charges {
		var size int64
		if c.listedIn == u.round {
			size = c.listed
		}
		u.used -= size
		switch {
		case c.known && c.changedIn == u.round:
			// if the key became known after its page was listed, the sum has both: rather too much than too little
		case c.sent > 0, c.endedIn == u.round:
			c.size, c.known = max(c.size, size), true
		default:
			c.size, c.known, c.least = size, true, 0
		}
		u.used += c.size
		u.reserved += c.room()
		if c.open == 0 && c.size == 0 && c.endedIn != u.round {
			delete(u.charges, key)
		}
	}
	for key, size := range l.recent {
		if u.charges[key] == nil && len(u.charges) < maxCharges {
			u.charges[key] = &charge{size: size, known: true}
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
