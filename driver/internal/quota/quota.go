// Package quota bounds how many bytes a part of a bucket holds. It counts them by ListObjectsV2, and uploads reserve room before they store.
//
// A [Quota] is shared by all file systems below a prefix. A [Reservation] is what one file adds to its [Quotas].
package quota

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/profile"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
	"github.com/babelftp/babelftp/internal/panics"
)

const (
	// recountFactor times the duration of a count must pass before an upload causes the next count, also after a count that failed. Otherwise
	// a client that repeats an upload would make S3 list the bucket all the time.
	recountFactor = 10

	// recountTimeout is how long an upload waits for such a count, in which S3 lists some hundred thousand objects.
	recountTimeout = 10 * time.Second
)

// A Quota bounds the bytes of all objects whose keys start with a prefix. All file systems that store such keys share one.
//
// S3 keeps no such sum. So [Quota.Count] lists the objects, by a request for each 1,000. In between a quota adds what its file systems
// store, and subtracts what they delete. Changes by other clients show with the next count. Until the first count has ended there is no
// bound. An upload reserves its room part by part, so that several uploads do not take the same room. The parts of interrupted uploads
// do not count, nor do their records in the upload journal.
//
// Before a quota refuses an upload it counts anew, because other clients may have deleted objects. It does not if the last count was
// recent.
type Quota struct {
	bucket atomic.Pointer[s3api.Bucket]
	prefix string
	limit  atomic.Int64

	counting chan struct{} // a semaphore: only one goroutine counts

	// Of the last count, with or without an error. Only the goroutine that counts may use them.
	ended time.Time
	took  time.Duration

	mu       sync.Mutex
	used     int64 // by the last count, and stored less deleted since it began
	reserved int64 // for uploads under way
	known    bool  // a count has ended
}

// New returns a quota of limit bytes. It makes no request.
func New(client s3api.Client, bucketName, prefix string, limit int64) *Quota {
	q := &Quota{prefix: prefix, counting: make(chan struct{}, 1)}
	q.SetBucket(client, bucketName)
	q.limit.Store(limit)
	return q
}

// SetBucket makes the next counts by another client, which has other credentials for example. The objects must be the same.
func (q *Quota) SetBucket(client s3api.Client, bucketName string) {
	q.bucket.Store(s3api.NewBucket(client, bucketName, profile.Profile{}, &endpoint.Stats{}, 0)) // it reads no object
}

// Limit returns the limit in bytes.
func (q *Quota) Limit() int64 { return q.limit.Load() }

// SetLimit sets the limit in bytes. What is stored and reserved stays, also above a lower limit.
func (q *Quota) SetLimit(limit int64) { q.limit.Store(limit) }

// Used returns how many bytes the objects have. known is false before the first count.
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
	begun := time.Now()
	q.mu.Lock()
	before := q.used
	q.mu.Unlock()
	sum, err := q.sum(ctx)
	q.ended, q.took = time.Now(), time.Since(begun)
	if err != nil {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used += sum - before // objects stored during the count may be in both: rather too much than too little
	q.known = true
	return true, nil
}

// sum lists all objects.
func (q *Quota) sum(ctx context.Context) (int64, error) {
	var sum int64
	for page, err := range q.bucket.Load().Pages(ctx, s3api.Listing{Prefix: q.prefix}) {
		if err != nil {
			return 0, err
		}
		for _, v := range page.Versions {
			sum += Charged(v.Key, v.Size)
		}
	}
	return sum, nil
}

// Charged returns how many bytes of an object count. The driver's own objects do not count, because users do not store them.
func Charged(key string, size int64) int64 {
	if keys.IsReserved(key) {
		return 0
	}
	return size
}

// reserve takes room for bytes. The error is EDQUOT if there is not enough.
func (q *Quota) reserve(ctx context.Context, bytes int64) error {
	if q.fits(bytes) {
		return nil
	}
	countCtx, done := context.WithTimeout(ctx, recountTimeout)
	defer done()
	if counted, _ := q.count(countCtx, true); counted && q.fits(bytes) { // after an error the previous count holds
		return nil
	}
	return s3errors.New(syscall.EDQUOT, fmt.Sprintf("quota of %d bytes has no room; delete files or raise the quota", q.Limit()))
}

func (q *Quota) fits(bytes int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known && q.used+q.reserved+bytes > q.Limit() {
		return false
	}
	q.reserved += bytes
	return true
}

func (q *Quota) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known && q.used+q.reserved >= q.Limit()
}

// Quotas are the quotas of a file system. An upload must fit into each.
type Quotas []*Quota

// Reserve takes room for bytes in all quotas, or in none.
func (qs Quotas) Reserve(ctx context.Context, bytes int64) error {
	for i, q := range qs {
		if err := q.reserve(ctx, bytes); err != nil {
			qs[:i].Release(bytes)
			return err
		}
	}
	return nil
}

// Release ends a reservation of so many bytes, after they are stored or when they will not be.
func (qs Quotas) Release(bytes int64) {
	for _, q := range qs {
		q.mu.Lock()
		q.reserved -= bytes
		q.mu.Unlock()
	}
}

// Smallest returns the smallest limit in bytes, 0 without a quota.
func (qs Quotas) Smallest() int64 {
	if len(qs) == 0 {
		return 0
	}
	return slices.MinFunc(qs, func(a, b *Quota) int { return cmp.Compare(a.Limit(), b.Limit()) }).Limit()
}

// Add counts so many bytes more, or fewer if bytes is negative.
func (qs Quotas) Add(bytes int64) {
	for _, q := range qs {
		q.mu.Lock()
		q.used += bytes
		q.mu.Unlock()
	}
}

// A Reservation is the room of a file in quotas: its bytes, less those of the object that it replaces.
type Reservation struct {
	Quotas   Quotas
	Exempt   Quotas       // the quotas in which the bytes count already
	Replaced func() int64 // returns the size of the replaced object in bytes, 0 without one
	reserved int64
}

// Grow takes the room that a file of so many bytes needs, before the caller stores them. The error is EDQUOT if there is not enough.
func (r *Reservation) Grow(ctx context.Context, size int64) error {
	more := size - r.Replaced() - r.reserved
	if more <= 0 {
		return nil
	}
	err := r.bounds().Reserve(ctx, more)
	if err == nil {
		r.reserved += more
	}
	return err
}

// Open returns EDQUOT if there is no room for a single byte. So a client gets the error before it sends a byte.
func (r *Reservation) Open(ctx context.Context) error {
	if !slices.ContainsFunc(r.Quotas, (*Quota).full) {
		return nil
	}
	defer r.End(0, false)
	return r.Grow(ctx, 1)
}

func (r *Reservation) bounds() Quotas {
	return slices.DeleteFunc(slices.Clone(r.Quotas), func(q *Quota) bool { return slices.Contains(r.Exempt, q) })
}

// End counts a file that is stored, with so many bytes, and ends the reservation.
func (r *Reservation) End(size int64, stored bool) {
	if stored {
		r.Quotas.Add(size - r.Replaced())
	}
	r.bounds().Release(r.reserved)
	r.reserved = 0
}

// Exactly returns a function for Replaced, for a known size.
func Exactly(size int64) func() int64 { return func() int64 { return size } }

// SizeOf asks S3 in the background for the size of the object of a key, if there are quotas. The caller must call the returned function
// before it replaces the object. If S3 gives no answer the size is 0, and the next count corrects that.
func (qs Quotas) SizeOf(ctx context.Context, bucket *s3api.Bucket, key string) func() int64 {
	if len(qs) == 0 {
		return Exactly(0)
	}
	found := make(chan int64, 1)
	go func() {
		size, _ := panics.Result(func() (int64, error) {
			v, _, err := bucket.Head(ctx, key)
			return v.Size, err
		})
		found <- size
	}()
	return sync.OnceValue(func() int64 { return <-found })
}
