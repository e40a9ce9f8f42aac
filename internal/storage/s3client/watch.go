package s3client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// firstRetry is the time after which a Watcher looks again at a bucket that cannot be used. It doubles up to
	// watchInterval.
	firstRetry = 500 * time.Millisecond
	// watchInterval is the time between two looks at a bucket that can be used.
	watchInterval = time.Minute
	// maxLooks is at how many buckets of one S3 server a Watcher looks in parallel.
	maxLooks = 16
	// firstLookTimeout is how long AwaitUsable waits for the first look at a bucket.
	firstLookTimeout = 5 * time.Second
)

var errNotLooked = errors.New("S3 has not answered yet")

// A Watcher looks at buckets again and again. Those that cannot be used when it begins are used as soon as they can.
type Watcher struct {
	Log *slog.Logger
	// AbandonedUploads is the age at which the journal of a bucket removes uploads. With 0 no bucket gets a journal.
	AbandonedUploads time.Duration
	// Usable is called once for each bucket, in a goroutine of its own, when it can be used for the first time.
	Usable func(context.Context, *Bucket)

	mu      sync.Mutex
	buckets []*Bucket
	changed chan struct{} // closed by the next Watch
}

// A watchState is what a Watcher knows of a bucket.
type watchState struct {
	looked chan struct{} // closed after the first look
	once   sync.Once     // closes looked

	retry time.Duration // of the Watcher alone, as is next
	next  time.Time

	mu     sync.Mutex
	usable bool  // Verify has succeeded once, and the bucket stays in use
	err    error // of the last look
}

// Watch replaces the buckets. What is known of those that stay is kept. Call it before there are sessions that use
// the buckets, which can wait for the first look at each.
func (w *Watcher) Watch(buckets []*Bucket) {
	for _, b := range buckets {
		if b.watched == nil {
			b.watched = &watchState{looked: make(chan struct{}), retry: firstRetry, err: errNotLooked}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buckets = buckets
	if w.changed != nil {
		close(w.changed)
	}
	w.changed = make(chan struct{})
}

// Run looks at the buckets until ctx ends. A slow S3 server delays no bucket of another.
func (w *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		servers := map[*driver.Endpoint][]*Bucket{}
		for _, b := range w.buckets {
			servers[b.Endpoint] = append(servers[b.Endpoint], b)
		}
		changed := w.changed
		w.mu.Unlock()
		looking, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		for _, buckets := range servers {
			all.Go(func() { w.watch(ctx, looking, buckets) })
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		stop()
		all.Wait()
	}
}

// watch looks at the buckets of one server until the context looking ends. That of Usable is ctx.
func (w *Watcher) watch(ctx, looking context.Context, buckets []*Bucket) {
	for looking.Err() == nil {
		var looks errgroup.Group
		looks.SetLimit(maxLooks)
		now := time.Now()
		for _, b := range buckets {
			if !b.watched.next.After(now) {
				looks.Go(func() error { w.look(ctx, looking, b); return nil })
			}
		}
		_ = looks.Wait() // no look returns an error
		next := time.Now().Add(watchInterval)
		for _, b := range buckets {
			if b.watched.next.Before(next) {
				next = b.watched.next
			}
		}
		select {
		case <-time.After(time.Until(next)):
		case <-looking.Done():
		}
	}
}

// look asks S3 for a bucket, and logs what has changed.
func (w *Watcher) look(ctx, looking context.Context, b *Bucket) {
	s := b.watched
	usable, before := s.get()
	err := panics.Catch(func() error {
		if usable {
			err := b.Check(looking)
			if err == nil {
				b.noticeVersions(looking, w.Log)
			}
			return err
		}
		return b.Verify(looking, w.Log)
	})
	if err == nil && !usable && w.AbandonedUploads > 0 {
		b.OpenJournal(w.Log, w.AbandonedUploads)
	}
	if looking.Err() != nil {
		return
	}
	log := w.Log.With("tenant", b.Tenant, "folder", b.Folder, "bucket", b.Name)
	if err == nil {
		if before != nil && !errors.Is(before, errNotLooked) {
			log.Info("bucket can be used again")
		}
		s.next = time.Now().Add(watchInterval)
		s.retry = firstRetry
	} else {
		if before == nil || err.Error() != before.Error() {
			log.Error("bucket cannot be used; the server tries again", "users_refused", !usable, "err", err)
		}
		s.next = time.Now().Add(s.retry)
		s.retry = min(2*s.retry, watchInterval)
	}
	s.mu.Lock()
	s.usable, s.err = usable || err == nil, err
	s.mu.Unlock()
	s.once.Do(func() { close(s.looked) })
	if !usable && err == nil && w.Usable != nil {
		panics.Go(func() { w.Usable(ctx, b) })
	}
}

func (s *watchState) get() (usable bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usable, s.err
}

// Usable tells whether the profile and the journal of the bucket are known. A bucket without a [Watcher] always is.
func (b *Bucket) Usable() bool {
	if b.watched == nil {
		return true
	}
	usable, _ := b.watched.get()
	return usable
}

// Up returns why the bucket could not be used at the last look, nil where it could, and false for known before the
// first.
func (b *Bucket) Up() (known bool, err error) {
	_, err = b.watched.get()
	return !errors.Is(err, errNotLooked), err
}

// AwaitUsable waits a few seconds for the first look at the bucket, and returns why the bucket cannot be used. It
// waits no longer when replaced is closed.
func (b *Bucket) AwaitUsable(ctx context.Context, replaced <-chan struct{}) error {
	if b.Usable() {
		return nil
	}
	timeout := time.NewTimer(firstLookTimeout)
	defer timeout.Stop()
	select {
	case <-b.watched.looked:
	case <-timeout.C:
	case <-replaced:
	case <-ctx.Done():
		return ctx.Err()
	}
	usable, err := b.watched.get()
	if usable {
		return nil
	}
	if errors.Is(err, errNotLooked) {
		return b.failed(err, err.Error(), "wait, or look at the log")
	}
	return err
}

// RefusingClient is a client for a bucket that cannot be used. Each request fails at once with EAGAIN.
func (b *Bucket) RefusingClient() *s3.Client {
	refuse := middleware.InitializeMiddlewareFunc("babelftp-refuse", func(
		context.Context, middleware.InitializeInput, middleware.InitializeHandler,
	) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
		return out, metadata, fmt.Errorf(
			"bucket %q could not be used when the user logged in: %w", b.Name, syscall.EAGAIN)
	})
	return variant(b.Client.Options(), func(o *s3.Options) {
		o.APIOptions = append(o.APIOptions[:len(o.APIOptions):len(o.APIOptions)], func(stack *middleware.Stack) error {
			return stack.Initialize.Add(refuse, middleware.Before)
		})
	})
}
