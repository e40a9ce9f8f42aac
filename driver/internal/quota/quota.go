// Package quota counts the bytes that are stored below the prefixes of a bucket, and refuses uploads that would exceed
// a limit. It counts with ListObjectsV2, and uploads reserve room before they store anything.
//
// A [Usage] is the sum for one prefix. [Usages] is the table of all usages of a bucket, and a [Limit] restricts a usage
// for some users. [Quotas] combines both for a file system. Every operation that changes a key begins a [Reservation]:
//
//	reservation := quotas.Begin(key)
//	reservation.StartHead(ctx, bucket, key) // gets the old size in the background
//	if err := reservation.Grow(ctx, size); err != nil {
//		return err // EDQUOT
//	}
//	reservation.Send(size)
//	_, err := bucket.Put(...)
//	reservation.End(err)
package quota

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/profile"
)

const (
	// recountFactor is the minimum time between the end of a count, even of a failed one, and a count that an upload
	// starts, as a multiple of the duration of the first count. Otherwise a client that repeats an upload would make S3
	// list the bucket all the time.
	recountFactor = 10

	// recountTimeout limits how long an upload waits for a count. S3 lists some hundred thousand objects in this time.
	recountTimeout = 10 * time.Second

	// maxClosed is the number of keys without an operation in progress that a usage remembers, which takes about 2 MB.
	maxClosed = 10_000
)

// Usages is the table of the usages in one bucket, by prefix. All file systems of the bucket share it, so every change
// of a key counts in each usage with a matching prefix, no matter who makes it. A usage is created when a limit needs
// it, and dropped when no limit has needed it for a while.
type Usages struct {
	mu       sync.Mutex
	byPrefix map[string]*Usage // by prefix
}

// NewUsages returns an empty table.
func NewUsages() *Usages { return &Usages{byPrefix: map[string]*Usage{}} }

// Of returns the usage of a prefix, which is empty or ends with a slash. It sends no request. If the usage is new, it
// uses client to count the objects.
func (t *Usages) Of(client s3api.Client, bucketName, prefix string) (u *Usage, added bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if u = t.byPrefix[prefix]; u != nil {
		u.requested = now
		return u, false
	}
	u = &Usage{
		table: t, prefix: prefix, added: now, requested: now,
		counting: make(chan struct{}, 1), entries: map[string]*entry{},
	}
	u.SetClient(client, bucketName)
	t.byPrefix[prefix] = u
	return u, true
}

// Forget drops the usages that nobody has requested for the given age.
func (t *Usages) Forget(age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.byPrefix, func(_ string, u *Usage) bool { return time.Since(u.requested) > age })
}

// withLock calls do while holding the lock. It does nothing if the table is nil.
func (t *Usages) withLock(do func()) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		do()
	}
}

// containing returns the usages whose prefix the key has. The caller must hold the lock.
func (t *Usages) containing(key string) (all []*Usage) {
	if s3object.IsReserved(key) {
		return nil
	}
	for end := range len(key) + 1 {
		if end > 0 && key[end-1:end] != s3object.Separator {
			continue
		}
		if u := t.byPrefix[key[:end]]; u != nil {
			all = append(all, u)
		}
	}
	return all
}

// SetClient changes the client of future counts, for example to use other credentials. The new client must list the
// same objects.
func (u *Usage) SetClient(client s3api.Client, bucketName string) {
	u.bucket.Store(s3api.NewBucket(client, bucketName, profile.Profile{}, &s3api.Stats{}, 0)) // lists only
}

// contains reports whether a key counts.
func (u *Usage) contains(key string) bool { return strings.HasPrefix(key, u.prefix) }

// A Usage is the number of bytes in the objects whose keys begin with a prefix.
//
// S3 does not provide such a sum, so [Usage.Count] lists the objects, with one request for each 1,000. Between counts,
// a usage adds what the file systems of this process store and subtracts what they delete. Changes by other clients
// appear in the next count. Uploads wait for the first count until the usage is ten seconds old; after that they are
// not limited until the count is complete. An upload reserves its room part by part, so that several uploads cannot use
// the same room. The parts of interrupted uploads do not count, and neither do their records in the upload journal.
//
// If a change overlaps with a count or with another change of the same key, the sum may be too large until the next
// count, but never too small: it includes the larger of the possible sizes, and subtracts the size of a key only once
// ([entry]). Nothing is subtracted for an object that was described before the end of the last count. The sum can only
// miss what other clients have stored since the last count, even if this process deletes it.
//
// Before a limit refuses an upload, the objects are counted again, because other clients may have deleted some. This is
// skipped if the last count is recent.
type Usage struct {
	table  *Usages
	prefix string
	added  time.Time
	bucket atomic.Pointer[s3api.Bucket]

	counting chan struct{} // a semaphore that allows one goroutine to count

	// End and duration of the last count, even of a failed one. Only the counting goroutine may use them.
	ended time.Time
	took  time.Duration

	// The following fields are guarded by the mutex of the table.
	used      int64             // the sum: the last count and the changes since it began
	reserved  int64             // by uploads in progress
	known     bool              // at least one count has succeeded
	due       time.Time         // when [Usage.Due] will return true again
	requested time.Time         // when [Usages.Of] last returned it
	entries   map[string]*entry // by key
	closed    int               // number of entries without an operation in progress
	late      int64             // size of the entries that were forgotten since the last count began
	since     time.Time         // objects that were described before this time are not subtracted
}

// Used returns the sum. known is false before the first count has succeeded.
func (u *Usage) Used() (bytes int64, known bool) {
	u.table.mu.Lock()
	defer u.table.mu.Unlock()
	return u.used, u.known
}

// Due reports whether the caller should count the objects now. It returns true once per interval.
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

// Count counts the bytes of all objects. After an error, the usage keeps the previous sum.
func (u *Usage) Count(ctx context.Context) error {
	_, err := u.count(ctx, 0)
	return err
}

// await waits for the first count, and starts it if nobody else has. It does not wait if a count is running and the
// usage is older than recountTimeout, because counting a large bucket takes minutes.
func (u *Usage) await(ctx context.Context) {
	if _, known := u.Used(); known || len(u.counting) > 0 && time.Since(u.added) > recountTimeout {
		return
	}
	u.recount(ctx) // after an error, nothing is limited
}

// recount counts again for an upload that has no room. It returns false if it did not, because the last count is
// recent.
func (u *Usage) recount(ctx context.Context) bool {
	ctx, done := context.WithTimeout(ctx, recountTimeout)
	defer done()
	counted, _ := u.count(ctx, recountFactor)
	return counted
}

// count waits until no other goroutine is counting. Then it counts, unless the last count ended less than rest times
// its own duration ago.
func (u *Usage) count(ctx context.Context, rest time.Duration) (counted bool, err error) {
	select {
	case u.counting <- struct{}{}:
		defer func() { <-u.counting }()
	case <-ctx.Done():
		return false, fmt.Errorf("wait for the count of a quota: %w", ctx.Err())
	}
	if time.Since(u.ended) < rest*u.took {
		return false, nil
	}
	begin := time.Now()
	err = u.list(ctx)
	u.ended, u.took = time.Now(), time.Since(begin)
	return err == nil, err
}

// list does the counting. If a request for a key overlaps with the count, the listing may contain the old or the new
// object, and the sum uses the larger size.
func (u *Usage) list(ctx context.Context) error {
	u.table.withLock(func() {
		u.forget()
		u.late = 0
		for _, e := range u.entries {
			e.listed = 0
		}
	})
	var sum int64
	for page, err := range u.bucket.Load().Pages(ctx, s3api.Listing{Prefix: u.prefix}) {
		if err != nil {
			return err
		}
		u.table.withLock(func() {
			for _, v := range page.Versions {
				if s3object.IsReserved(v.Key) { // not stored by users
					continue
				}
				sum += v.Size
				if e := u.entries[v.Key]; e != nil {
					e.listed = v.Size
				}
			}
		})
	}
	u.table.withLock(func() {
		for _, e := range u.entries {
			e.size, e.sized = max(e.size, e.listed), true
			if e.sent > 0 {
				e.largest = max(e.largest, e.listed)
			}
			sum += e.size - e.listed
		}
		u.used, u.known = sum+u.late, true
		u.forget()
	})
	return nil
}

// forget drops the entries without an operation in progress. The caller must hold the lock.
func (u *Usage) forget() {
	for key, e := range u.entries {
		if e.open == 0 {
			u.late += e.size
			delete(u.entries, key)
		}
	}
	u.closed, u.since = 0, time.Now()
}
