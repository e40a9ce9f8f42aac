package s3client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// firstRetry is the time until a Watcher checks an unusable bucket again. It doubles up to watchInterval.
	firstRetry = 500 * time.Millisecond
	// watchInterval is the time between two checks of a usable bucket.
	watchInterval = time.Minute
	// maxChecks is the number of buckets on one S3 server that a Watcher checks in parallel.
	maxChecks = 16
	// firstCheckTimeout limits how long AwaitUsable waits for the first check of a bucket.
	firstCheckTimeout = 5 * time.Second
)

var errNotChecked = errors.New("S3 has not responded yet")

// A Watcher checks buckets regularly. A bucket that is not usable at first is used as soon as a check succeeds.
type Watcher struct {
	Log *slog.Logger
	// AbandonedUploads is the age at which the journal of a bucket removes unfinished uploads. If it is 0, buckets get
	// no journal.
	AbandonedUploads time.Duration
	// Usable is called once for each bucket, in its own goroutine, when the bucket becomes usable for the first time.
	Usable func(context.Context, *Bucket)

	mu      sync.Mutex
	buckets []*Bucket
	changed chan struct{} // closed by the next Watch
}

// A watchState is the state of a bucket that a Watcher checks.
type watchState struct {
	checked chan struct{} // closed after the first check
	once    sync.Once     // closes checked

	versioned atomic.Bool // versions were enabled after Verify; see noticeVersions

	retry time.Duration // retry and next are used by the Watcher's goroutine only
	next  time.Time

	mu     sync.Mutex
	usable bool  // Verify succeeded once; the bucket then stays in use
	err    error // error of the last check
}

// Watch replaces the buckets to check, and keeps the state of those that stay. Call it before sessions use the
// buckets, so that they can wait for the first check.
func (w *Watcher) Watch(buckets []*Bucket) {
	for _, b := range buckets {
		if b.watched == nil {
			b.watched = &watchState{checked: make(chan struct{}), retry: firstRetry, err: errNotChecked}
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

// Run checks the buckets until ctx ends. A slow S3 server does not delay the buckets of other servers.
func (w *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		servers := map[*driver.Endpoint][]*Bucket{}
		for _, b := range w.buckets {
			servers[b.Endpoint] = append(servers[b.Endpoint], b)
		}
		changed := w.changed
		w.mu.Unlock()
		checking, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		for _, buckets := range servers {
			all.Go(func() { w.watch(ctx, checking, buckets) })
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
		stop()
		all.Wait()
	}
}

// watch checks the buckets of one server until the context checking ends. Usable gets ctx.
func (w *Watcher) watch(ctx, checking context.Context, buckets []*Bucket) {
	for checking.Err() == nil {
		var checks errgroup.Group
		checks.SetLimit(maxChecks)
		now := time.Now()
		for _, b := range buckets {
			if !b.watched.next.After(now) {
				checks.Go(func() error { w.check(ctx, checking, b); return nil })
			}
		}
		_ = checks.Wait() // check returns no error
		next := time.Now().Add(watchInterval)
		for _, b := range buckets {
			if b.watched.next.Before(next) {
				next = b.watched.next
			}
		}
		select {
		case <-time.After(time.Until(next)):
		case <-checking.Done():
		}
	}
}

// check checks a bucket, and logs changes of its state.
func (w *Watcher) check(ctx, checking context.Context, b *Bucket) {
	s := b.watched
	usable, before := s.get()
	err := panics.Catch(func() error {
		if usable {
			err := b.Check(checking)
			if err == nil {
				b.noticeVersions(checking, w.Log)
			}
			return err
		}
		return b.Verify(checking, w.Log)
	})
	if err == nil && !usable && w.AbandonedUploads > 0 {
		b.OpenJournal(w.Log, w.AbandonedUploads)
	}
	if checking.Err() != nil {
		return
	}
	log := w.Log.With("tenant", b.Tenant, "folder", b.Folder, "bucket", b.Name)
	if err == nil {
		if before != nil && !errors.Is(before, errNotChecked) {
			log.Info("bucket usable again")
		}
		s.next = time.Now().Add(watchInterval)
		s.retry = firstRetry
	} else {
		if before == nil || err.Error() != before.Error() {
			log.Error("bucket cannot be used; retrying", "users_refused", !usable, "err", err)
		}
		s.next = time.Now().Add(s.retry)
		s.retry = min(2*s.retry, watchInterval)
	}
	s.mu.Lock()
	s.usable, s.err = usable || err == nil, err
	s.mu.Unlock()
	s.once.Do(func() { close(s.checked) })
	if !usable && err == nil && w.Usable != nil {
		panics.Go(func() { w.Usable(ctx, b) })
	}
}

func (s *watchState) get() (usable bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usable, s.err
}

// Usable reports whether Verify succeeded, so that the profile and the journal are known. It returns true for a bucket
// without a [Watcher].
func (b *Bucket) Usable() bool {
	if b.watched == nil {
		return true
	}
	usable, _ := b.watched.get()
	return usable
}

// Up returns the error of the last check, which is nil if the bucket could be used. known is false before the first
// check.
func (b *Bucket) Up() (known bool, err error) {
	_, err = b.watched.get()
	return !errors.Is(err, errNotChecked), err
}

// AwaitUsable waits a few seconds for the first check of the bucket, and returns an error if the bucket is not usable.
// It stops waiting when replaced is closed.
func (b *Bucket) AwaitUsable(ctx context.Context, replaced <-chan struct{}) error {
	if b.Usable() {
		return nil
	}
	timeout := time.NewTimer(firstCheckTimeout)
	defer timeout.Stop()
	select {
	case <-b.watched.checked:
	case <-timeout.C:
	case <-replaced:
	case <-ctx.Done():
		return ctx.Err()
	}
	usable, err := b.watched.get()
	if usable {
		return nil
	}
	if errors.Is(err, errNotChecked) {
		return b.newError(err, err.Error(), "wait, or check the log")
	}
	return err
}

// RefusingClient returns a client for a bucket that is not usable. Each of its requests fails at once with EAGAIN.
func (b *Bucket) RefusingClient() *s3.Client {
	refuse := middleware.InitializeMiddlewareFunc("babelftp-refuse", func(
		context.Context, middleware.InitializeInput, middleware.InitializeHandler,
	) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
		return out, metadata, fmt.Errorf(
			"bucket %q was not usable when the user logged in: %w", b.Name, syscall.EAGAIN)
	})
	return variant(b.Client.Options(), func(o *s3.Options) {
		o.APIOptions = append(o.APIOptions[:len(o.APIOptions):len(o.APIOptions)], func(stack *middleware.Stack) error {
			return stack.Initialize.Add(refuse, middleware.Before)
		})
	})
}
