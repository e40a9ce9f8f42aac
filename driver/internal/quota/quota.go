// Package quota counts the bytes that are stored below the prefixes of a bucket, and refuses uploads that would exceed
// a limit. It counts them by ListObjectsV2, and uploads reserve room before they store.
//
// A [Usage] is the sum of one prefix, and stands in the table [Usages] of the bucket. A [Limit] is a bound on a usage
// for some users. A [Change] is what an operation does to the bytes of one key in all usages that contain the key.
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
	// recountFactor times the duration of a count must pass before an upload causes the next count, also after a
	// count that failed. Otherwise a client that repeats an upload would make S3 list the bucket all the time.
	recountFactor = 10

	// recountTimeout is how long an upload waits for a count, in which S3 lists some hundred thousand objects.
	recountTimeout = 10 * time.Second

	// maxClosed is how many keys a usage remembers that no operation is changing, in about 2 MB.
	maxClosed = 10_000
)

// Usages is the table of the usages in one bucket, by prefix. All file systems of the bucket share it, so a key
// counts in each usage whose prefix it has, whoever stores it. A usage is made when a limit asks for it, and dropped
// when no limit has asked for it for a while.
type Usages struct {
	mu     sync.Mutex
	places map[string]*Usage // by prefix
}

// NewUsages returns an empty table.
func NewUsages() *Usages { return &Usages{places: map[string]*Usage{}} }

// Of returns the usage of a prefix, which is empty or ends with a slash. It makes no request. If the usage is new,
// its objects are counted by the client.
func (t *Usages) Of(client s3api.Client, bucketName, prefix string) (u *Usage, added bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if u = t.places[prefix]; u != nil {
		u.asked = now
		return u, false
	}
	u = &Usage{
		table: t, prefix: prefix, added: now, asked: now,
		counting: make(chan struct{}, 1), entries: map[string]*entry{},
	}
	u.SetClient(client, bucketName)
	t.places[prefix] = u
	return u, true
}

// Forget drops the usages for which nobody has asked for so long.
func (t *Usages) Forget(age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.places, func(_ string, u *Usage) bool { return time.Since(u.asked) > age })
}

// locked calls a function with the lock, unless the table is nil.
func (t *Usages) locked(do func()) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		do()
	}
}

// containing returns the usages of the prefixes of a key. The caller holds the lock.
func (t *Usages) containing(key string) (all []*Usage) {
	if s3object.IsReserved(key) {
		return nil
	}
	for end := range len(key) + 1 {
		if end > 0 && key[end-1:end] != s3object.Separator {
			continue
		}
		if u := t.places[key[:end]]; u != nil {
			all = append(all, u)
		}
	}
	return all
}

// SetClient makes the next counts by another client, for example with other credentials. The objects must be the
// same.
func (u *Usage) SetClient(client s3api.Client, bucketName string) {
	u.bucket.Store(s3api.NewBucket(client, bucketName, profile.Profile{}, &s3api.Stats{}, 0)) // it reads no object
}

// contains reports whether a key counts.
func (u *Usage) contains(key string) bool { return strings.HasPrefix(key, u.prefix) }

// A Usage is how many bytes the objects have whose keys start with a prefix.
//
// S3 keeps no such sum. So [Usage.Count] lists the objects, by a request for each 1,000. In between a usage adds what
// the file systems of the process store, and subtracts what they delete. Changes by other clients show with the next
// count. Uploads wait for the first count until the usage is ten seconds old; then there is no bound until the count
// has ended. An upload reserves its room part by part, so that several uploads do not take the same room. The parts of
// interrupted uploads do not count, and neither do their records in the upload journal.
//
// If a change overlaps with a count or with another change of the same key, the sum may be too large until the next
// count, never too small: it takes the larger state, and subtracts the bytes of a key only once ([entry]). Nothing is
// subtracted for an object that was seen before the last count ended. The sum is too small only by what other clients
// have stored since the last count, also if this process deletes that.
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
	used     int64             // the sum: by the last count, and what has changed since it began
	reserved int64             // for uploads in progress
	known    bool              // a count has ended
	due      time.Time         // when [Usage.Due] returns true again
	asked    time.Time         // when [Usages.Of] last returned it
	entries  map[string]*entry // by key
	closed   int               // entries that no operation is changing
	late     int64             // bytes of entries forgotten since the last count began
	since    time.Time         // nothing that was seen before is subtracted
}

// Used returns how many bytes the objects have. known is false before the first count.
func (u *Usage) Used() (bytes int64, known bool) {
	u.table.mu.Lock()
	defer u.table.mu.Unlock()
	return u.used, u.known
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
	_, err := u.count(ctx, 0)
	return err
}

// await waits for the first count, and begins it if nobody else does. It waits no longer when the usage is old
// already, because a large bucket is being counted for minutes.
func (u *Usage) await(ctx context.Context) {
	if _, known := u.Used(); known || len(u.counting) > 0 && time.Since(u.added) > recountTimeout {
		return
	}
	u.recount(ctx) // after an error there is no bound
}

// recount counts again for an upload that has no room, and reports whether it did. It does not if the last count was
// recent.
func (u *Usage) recount(ctx context.Context) bool {
	ctx, done := context.WithTimeout(ctx, recountTimeout)
	defer done()
	counted, _ := u.count(ctx, recountFactor)
	return counted
}

// count waits until no other goroutine counts, and then counts unless the last count ended less than rest times its
// duration ago.
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

// list counts. If a request for a key overlaps with the count, the listing may have either state of the key, and the
// sum takes the larger one.
func (u *Usage) list(ctx context.Context) error {
	u.table.locked(func() {
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
		u.table.locked(func() {
			for _, v := range page.Versions {
				if s3object.IsReserved(v.Key) { // users do not store them
					continue
				}
				sum += v.Size
				if e := u.entries[v.Key]; e != nil {
					e.listed = v.Size
				}
			}
		})
	}
	u.table.locked(func() {
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

// forget drops the keys that no operation is changing. The caller holds the lock.
func (u *Usage) forget() {
	for key, e := range u.entries {
		if e.open == 0 {
			u.late += e.size
			delete(u.entries, key)
		}
	}
	u.closed, u.since = 0, time.Now()
}
