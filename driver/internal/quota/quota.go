// Package quota bounds how many bytes a part of a bucket holds: it counts them by ListObjectsV2, and what is stored reserves its room first.
//
// A [Quota] is shared by all file systems below a prefix. A [Reservation] is what one file adds to its [Quotas].
package quota

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/profile"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

const (
	// recountRest is how many times the duration of a count must pass before the next one that an upload asks for. It also holds for a count
	// that failed. Otherwise a client that tries again and again would make S3 list the bucket all the time.
	recountRest = 10

	// recountTimeout is how long an upload waits for such a count, in which S3 lists some hundred thousand objects.
	recountTimeout = 10 * time.Second
)

// A Quota bounds how many bytes the objects whose keys start with a prefix have together. Share one among all file systems in which
// such keys are stored.
//
// S3 keeps no such sum, so that it is counted by listing the objects ([Quota.Count]), which takes a request for each 1,000. In between
// a quota adds what its file systems store and takes off what they delete; what others do shows with the next count. Until the first
// one has ended there is no bound. An upload reserves its room part by part, so that several
// uploads do not take the same room. The parts of interrupted uploads do not count, nor do their records in the upload
// journal.
//
// Before something is refused the objects are counted anew, unless that was tried a short while ago: what others have deleted makes room
// then.
type Quota struct {
	bucket *s3api.Bucket
	prefix string
	limit  int64

	counting chan struct{} // holds what only one may have: the right to count

	mu       sync.Mutex
	counted  int64     // by the last count
	since    int64     // stored less deleted since it began
	reserved int64     // for uploads under way
	known    bool      // a count has ended
	tried    time.Time // when the last count ended, or was cut off
	took     time.Duration
}

// New returns a quota of limit bytes, without a request.
func New(client s3api.Client, bucketName, prefix string, limit int64) *Quota {
	return &Quota{
		bucket: s3api.NewBucket(client, bucketName, profile.Profile{}, &endpoint.Stats{}, 0), // it reads no object
		prefix: prefix, limit: limit, counting: make(chan struct{}, 1),
	}
}

// Limit is how many bytes there may be.
func (q *Quota) Limit() int64 { return q.limit }

// Used is how many bytes there are, and false as long as they were not counted.
func (q *Quota) Used() (bytes int64, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(0, q.counted+q.since), q.known
}

// Count counts the bytes of all objects. After an error the quota goes by what it knew before.
func (q *Quota) Count(ctx context.Context) error {
	if err := q.beginCount(ctx); err != nil {
		return err
	}
	defer q.endCount()
	return q.count(ctx)
}

func (q *Quota) beginCount(ctx context.Context) error {
	select {
	case q.counting <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until the objects of a quota are counted: %w", ctx.Err())
	}
}

func (q *Quota) endCount() { <-q.counting }

func (q *Quota) count(ctx context.Context) error {
	begun, before := time.Now(), q.sinceCount()
	sum, err := q.sum(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tried, q.took = time.Now(), time.Since(begun)
	if err != nil {
		return err
	}
	q.counted, q.since = sum, q.since-before // what came meanwhile may be in both: too much rather than too little
	q.known = true
	return nil
}

// sum lists all objects.
func (q *Quota) sum(ctx context.Context) (int64, error) {
	var sum int64
	for in := (s3api.Listing{Prefix: q.prefix}); ; {
		page, err := q.bucket.List(ctx, in)
		if err != nil {
			return 0, err
		}
		for _, v := range page.Versions {
			sum += Charged(v.Key, v.Size)
		}
		if page.Next == "" {
			return sum, nil
		}
		in.Token = page.Next
	}
}

// Charged is how many bytes of an object count. The driver's own objects are not content, and come and go without their owner.
func Charged(key string, size int64) int64 {
	if keys.IsReserved(key) {
		return 0
	}
	return size
}

func (q *Quota) sinceCount() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.since
}

// reserve takes room for bytes that shall be stored. EDQUOT says that there is not so much.
func (q *Quota) reserve(ctx context.Context, bytes int64) error {
	if q.fits(bytes) || q.recount(ctx) && q.fits(bytes) {
		return nil
	}
	return s3errors.New(syscall.EDQUOT, fmt.Sprintf("quota of %d bytes has no room; delete files or raise the quota", q.limit))
}

func (q *Quota) fits(bytes int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known && q.counted+q.since+q.reserved+bytes > q.limit {
		return false
	}
	q.reserved += bytes
	return true
}

func (q *Quota) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known && q.counted+q.since+q.reserved >= q.limit
}

// recount counts anew, and returns false where that brings nothing new.
func (q *Quota) recount(ctx context.Context) bool {
	ctx, done := context.WithTimeout(ctx, recountTimeout)
	defer done()
	if q.beginCount(ctx) != nil {
		return false
	}
	defer q.endCount()
	return q.mayRecount() && q.count(ctx) == nil
}

// mayRecount tells whether the last count was long enough ago.
func (q *Quota) mayRecount() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Since(q.tried) > recountRest*q.took
}

// Quotas are those that hold for what a file system stores.
type Quotas []*Quota

// Reserve takes room for bytes that shall be stored in all of them, or none.
func (qs Quotas) Reserve(ctx context.Context, bytes int64) error {
	for i, q := range qs {
		if err := q.reserve(ctx, bytes); err != nil {
			qs[:i].Release(bytes)
			return err
		}
	}
	return nil
}

// Release gives back what was reserved, when it is stored or never will be.
func (qs Quotas) Release(bytes int64) {
	for _, q := range qs {
		q.mu.Lock()
		q.reserved -= bytes
		q.mu.Unlock()
	}
}

// Smallest is the least of the limits, 0 where there is none.
func (qs Quotas) Smallest() int64 {
	if len(qs) == 0 {
		return 0
	}
	return slices.MinFunc(qs, func(a, b *Quota) int { return cmp.Compare(a.limit, b.limit) }).limit
}

// Add notes that objects have grown by so many bytes, or have shrunk.
func (qs Quotas) Add(bytes int64) {
	for _, q := range qs {
		q.mu.Lock()
		q.since += bytes
		q.mu.Unlock()
	}
}

// An Reservation is what a file adds to quotas: its bytes, less those of the object that it replaces.
type Reservation struct {
	Quotas   Quotas
	Exempt   Quotas       // those of the quotas in which all that is stored has its room already
	Replaced func() int64 // the size of that object in bytes, 0 where there is none
	reserved int64
}

// Grow takes the room that a file of so many bytes needs, before any of them is stored. EDQUOT says that there is too little.
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

// Open returns EDQUOT where there is room for nothing. A client understands an error best before it sends a byte.
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

// End notes that the file is stored, with so many bytes, or will not be.
func (r *Reservation) End(size int64, stored bool) {
	if stored {
		r.Quotas.Add(size - r.Replaced())
	}
	r.bounds().Release(r.reserved)
	r.reserved = 0
}

// Exactly is a size that is known.
func Exactly(size int64) func() int64 { return func() int64 { return size } }

// SizeOf finds out, if there are quotas, what size the object of a key has now. It works in the background, until what it
// returns is called, which must be before the object is replaced. Where S3 does not tell, the size is 0: the next count knows.
func (qs Quotas) SizeOf(ctx context.Context, bucket *s3api.Bucket, key string) func() int64 {
	if len(qs) == 0 {
		return Exactly(0)
	}
	found := make(chan int64, 1)
	go func() {
		v, _, _ := bucket.Head(ctx, key)
		found <- v.Size
	}()
	return sync.OnceValue(func() int64 { return <-found })
}
