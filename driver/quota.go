package driver

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
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

const (
	// recountRest is how many times as long as a count took the next one is put off, where an upload that would be refused asks for it,
	// whether or not the count came to its end. Otherwise a client that tries again and again has S3 list the bucket all the time.
	recountRest = 10

	// recountTimeout is how long an upload waits for such a count, in which S3 lists some hundred thousand objects.
	recountTimeout = 10 * time.Second
)

// A Quota bounds how many bytes the objects whose keys start with a prefix have together. Share one among all file systems in which
// such keys are stored.
//
// S3 keeps no such sum, so that it is counted by listing the objects ([Quota.Count]), which takes a request for each 1,000. In between
// a quota adds what its file systems store and takes off what they delete; what others do shows with the next count. Until the first
// one has ended there is no bound. Nor is there one for what is no object yet: an upload claims its room part by part, so that several
// at once do not take the same, but the parts of those that broke and are kept for their owner do not count, and nor do their records in
// a [Ledger].
//
// Before something is refused the objects are counted anew, unless that was tried a short while ago: what others have deleted makes room
// then.
type Quota struct {
	bucket *s3api.Bucket
	prefix string
	limit  int64

	counting chan struct{} // holds what only one may have: the right to count

	mu      sync.Mutex
	counted int64     // bytes, by the last count
	since   int64     // bytes that have come since it began, less those that have gone
	claimed int64     // bytes of what is being stored
	known   bool      // some count has come to its end
	tried   time.Time // when the last count ended, or was cut off
	took    time.Duration
}

// NewQuota returns a quota of limit bytes, without a request.
func NewQuota(client s3api.Client, bucketName, prefix string, limit int64) *Quota {
	return &Quota{
		bucket: s3api.NewBucket(client, bucketName, Profile{}, &endpoint.Stats{}, defaultPatience),
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
		return fmt.Errorf("wait for a count: %w", ctx.Err())
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
			sum += charged(v.Key, v.Size)
		}
		if page.Next == "" {
			return sum, nil
		}
		in.Token = page.Next
	}
}

// charged is how many bytes of an object count. The driver's own objects are not content, and come and go without their owner.
func charged(key string, size int64) int64 {
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

// claim takes room for bytes that shall be stored. EDQUOT says that there is not so much.
func (q *Quota) claim(ctx context.Context, bytes int64) error {
	if q.fits(bytes) || q.recount(ctx) && q.fits(bytes) {
		return nil
	}
	return s3errors.New(syscall.EDQUOT, fmt.Sprintf("quota of %d bytes", q.limit))
}

func (q *Quota) fits(bytes int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known && q.counted+q.since+q.claimed+bytes > q.limit {
		return false
	}
	q.claimed += bytes
	return true
}

func (q *Quota) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.known && q.counted+q.since+q.claimed >= q.limit
}

// recount counts anew, and returns false where that brings nothing new.
func (q *Quota) recount(ctx context.Context) bool {
	ctx, done := context.WithTimeout(ctx, recountTimeout)
	defer done()
	if q.beginCount(ctx) != nil {
		return false
	}
	defer q.endCount()
	return q.rested() && q.count(ctx) == nil
}

// rested tells whether the last count was long enough ago.
func (q *Quota) rested() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Since(q.tried) > recountRest*q.took
}

// Quotas are those that hold for what a file system stores.
type Quotas []*Quota

// claim takes room for bytes that shall be stored in all of them, or none.
func (qs Quotas) claim(ctx context.Context, bytes int64) error {
	for i, q := range qs {
		if err := q.claim(ctx, bytes); err != nil {
			qs[:i].release(bytes)
			return err
		}
	}
	return nil
}

// release gives back what was claimed, when it is stored or never will be.
func (qs Quotas) release(bytes int64) {
	for _, q := range qs {
		q.mu.Lock()
		q.claimed -= bytes
		q.mu.Unlock()
	}
}

// smallest is the least of the limits, 0 where there is none.
func (qs Quotas) smallest() int64 {
	if len(qs) == 0 {
		return 0
	}
	return slices.MinFunc(qs, func(a, b *Quota) int { return cmp.Compare(a.limit, b.limit) }).limit
}

// add notes that objects have grown by so many bytes, or have shrunk.
func (qs Quotas) add(bytes int64) {
	for _, q := range qs {
		q.mu.Lock()
		q.since += bytes
		q.mu.Unlock()
	}
}

// An addition is what a file adds to quotas: its bytes, less those of the object that it replaces.
type addition struct {
	quotas   Quotas
	exempt   Quotas       // those of the quotas in which all that is stored has its room already
	replaced func() int64 // the size of that object in bytes, 0 where there is none
	claimed  int64
}

// claim takes the room that a file of so many bytes needs, before any of them is stored. EDQUOT says that there is too little.
func (a *addition) claim(ctx context.Context, size int64) error {
	more := size - a.replaced() - a.claimed
	if more <= 0 {
		return nil
	}
	err := a.bounds().claim(ctx, more)
	if err == nil {
		a.claimed += more
	}
	return err
}

// open returns EDQUOT where there is room for nothing. A client that is told before it sends a byte understands it best.
func (a *addition) open(ctx context.Context) error {
	if !slices.ContainsFunc(a.quotas, (*Quota).full) {
		return nil
	}
	defer a.end(0, false)
	return a.claim(ctx, 1)
}

func (a *addition) bounds() Quotas {
	return slices.DeleteFunc(slices.Clone(a.quotas), func(q *Quota) bool { return slices.Contains(a.exempt, q) })
}

// end notes that the file is stored, with so many bytes, or will not be.
func (a *addition) end(size int64, stored bool) {
	if stored {
		a.quotas.add(size - a.replaced())
	}
	a.bounds().release(a.claimed)
	a.claimed = 0
}

// sizeOf finds out for the quotas, if there are any, what size the object has that is there now. That goes on while something else is
// done, until what it returns is called, which must be before the object is replaced. Where S3 does not tell it is 0: the next count
// knows.
func (f *Fs) sizeOf(ctx context.Context, key string) func() int64 {
	if len(f.opts.Quotas) == 0 {
		return exactly(0)
	}
	found := make(chan int64, 1)
	go func() {
		v, _, _ := f.bucket.Head(ctx, key)
		found <- v.Size
	}()
	return sync.OnceValue(func() int64 { return <-found })
}

func exactly(size int64) func() int64 { return func() int64 { return size } }
