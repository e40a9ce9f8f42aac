package upload

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/concurrency"
	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// partGrowth makes a part at least this fraction of what precedes it. From the smallest parts that S3 takes, 5 MiB each, 10,000
	// then reach 5 TiB; the last of them are of 4 GiB, which S3 takes too.
	partGrowth = 1280

	// copyConcurrency is how many parts of one object S3 copies at once. They cost this process nothing.
	copyConcurrency = 16

	// minCopyPart is how much of an object is copied by one request at least, where there is so much: S3 does that within seconds.
	minCopyPart = 128 << 20

	// copyPartSize is how much is copied by one request: little enough to copy an object by several at once.
	copyPartSize = 1 << 30

	// abortTimeout bounds the requests that outlive the session, because without them an upload could stay open.
	abortTimeout = 30 * time.Second
)

// partSizeAt returns the size in bytes of the part that begins at offset, where the first has size. Nothing else cuts an upload, so
// that a part of a number always has the same place.
func partSizeAt(b *membudget.Budget, size, offset int64) int64 {
	return min(max(size, offset/partGrowth), s3api.MaxPartSize, b.Limit())
}

// A multipart is an upload by parts, several at once, that ends with complete, abort or drain. Its methods are for one
// goroutine.
type multipart struct {
	bucket   *s3api.Bucket
	log      *slog.Logger
	upload   s3api.Upload
	entry    *journal.Entry  // in the journal
	until    context.Context // ends when nobody waits for parts any more
	ctx      context.Context // of the parts; it ends with the first that fails
	cancel   context.CancelFunc
	group    *errgroup.Group
	transfer *concurrency.Transfer
	parts    []*s3api.Part // ETags are there when the group has ended
	number   int32         // of the last part
	slots    semaphore     // of parts that are copied, nil for its own
}

// A uploadPlan says what an upload is for.
type uploadPlan struct {
	key      string
	owner    string                  // who may resume it, empty for nobody
	partSize int64                   // what its parts are cut by, for whoever resumes it
	uploaded bool                    // its parts are uploaded, and not copied
	client   *journal.ClientWait     // whose bytes it waits for, nil without an owner
	lost     context.CancelCauseFunc // ends it when another session has taken it over
}

// startMultipart begins an upload, which ends with ctx.
func (u *Uploader) startMultipart(ctx context.Context, key string, a *attributes.Attributes) (*multipart, error) {
	ctx, lost := context.WithCancelCause(ctx)
	m, err := u.createMultipart(ctx, ctx, uploadPlan{key: key, partSize: u.PartSize, lost: lost}, a)
	if err != nil {
		lost(nil)
		return nil, err
	}
	cancel := m.cancel
	m.cancel = func() {
		cancel()
		lost(nil)
	}
	return m, nil
}

// createMultipart begins an upload for which somebody waits until the first context ends, and whose parts go on until the second does.
func (u *Uploader) createMultipart(until, ctx context.Context, p uploadPlan, a *attributes.Attributes) (_ *multipart, err error) {
	if err := context.Cause(until); err != nil {
		return nil, err
	}
	var e *journal.Entry
	if l := u.Journal; l != nil {
		e = l.Enter(until, l.NewRecord(p.owner, p.key, p.partSize), p.client, p.lost)
		defer func() {
			if err != nil {
				e.Abandon(ctx, err)
			}
		}()
	}
	// Not cancelled once begun: an upload whose ID got lost could not be aborted.
	createCtx, done := context.WithTimeout(context.WithoutCancel(ctx), journal.CreateTimeout)
	defer done()
	created, err := u.Bucket.CreateUpload(createCtx, p.key, a, s3api.PartChecksums{Uploaded: p.uploaded, Configured: u.Objects.Checksum != ""})
	if err != nil {
		return nil, err
	}
	m := u.multipart(until, ctx, created)
	m.entry = e
	e.SetUpload(until, created.ID)
	return m, nil
}

// multipart is an upload that has begun.
func (u *Uploader) multipart(until, ctx context.Context, begun s3api.Upload) *multipart {
	m := &multipart{
		bucket: u.Bucket, log: u.Log, upload: begun, until: until, transfer: u.Limiter.Join(u.Concurrency), slots: u.copySlots,
	}
	ctx, m.cancel = context.WithCancel(ctx)
	m.group, m.ctx = errgroup.WithContext(ctx)
	return m
}

// slots bound how many parts are under way at once.
type slots interface {
	// Acquire waits for a slot. It returns false when one of the contexts ends first.
	Acquire(ctx, until context.Context) bool

	// ReleasePart frees a slot for another part. S3 has taken so many bytes of this one, since begin.
	ReleasePart(begin time.Time, bytes int64)
}

// add lets transfer bring the next part, of so many bytes, to S3, and say what it has answered. It waits for a slot.
func (m *multipart) add(s slots, bytes int64, transfer func(p *s3api.Part) error) error {
	if m.number >= s3api.MaxParts {
		m.log.Warn("upload needs more parts than S3 takes; where all must be of one size a larger part_size helps",
			"bucket", m.bucket.Name, "key", m.upload.Key, "parts", s3api.MaxParts, "equal", !m.bucket.Profile.UnequalParts)
		return syscall.EFBIG
	}
	if err := m.ended(); err != nil {
		return err
	}
	if !s.Acquire(m.ctx, m.until) {
		return m.ended()
	}
	m.number++
	part := &s3api.Part{Number: m.number}
	m.parts = append(m.parts, part)
	begin := time.Now()
	m.group.Go(func() error {
		err := transfer(part)
		if err != nil {
			bytes = 0
		}
		s.ReleasePart(begin, bytes)
		return err
	})
	return nil
}

// await waits until another part is worth filling.
func (m *multipart) await() error {
	if !m.transfer.WaitToFill(m.ctx, m.until) {
		return m.ended()
	}
	return nil
}

// ended is why no part is sent any more, nil while some are.
func (m *multipart) ended() error {
	if err := context.Cause(m.ctx); err != nil {
		return err
	}
	return context.Cause(m.until)
}

// send adds the bytes of a buffer, and calls done when S3 has them or does not take them. After an error, which may be that of a part before,
// they are still the caller's.
func (m *multipart) send(b *membudget.Buffer, done func()) error {
	b.Seal()
	return m.add(m.transfer, b.Len(), func(p *s3api.Part) (err error) {
		defer done()
		body := b.Body()
		ctx, stop := outlive(m.ctx, abortTimeout, body.Sent)
		defer stop()
		*p, err = m.bucket.UploadPart(ctx, m.upload, p.Number, body, b.Checksum())
		return err
	})
}

// copy adds the first length bytes of a version, in parts of about size bytes, without reading them. They must be as many as
// the smallest part has. A part that S3 has begun to copy is waited for whatever happens: S3 would not hear that nobody wants it any
// longer, and leave it behind when the upload was aborted before.
func (m *multipart) copy(v s3api.Version, length, size int64) error {
	slots := m.slots
	if slots == nil {
		slots = make(semaphore, copyConcurrency)
	}
	count, begin := m.bucket.Profile.Parts(length, size)
	for i := range count {
		from, to := begin(i), begin(i+1)
		err := m.add(slots, to-from, func(p *s3api.Part) (err error) {
			ctx, done := outlive(m.ctx, abortTimeout, func() bool { return true })
			defer done()
			*p, err = m.bucket.CopyPart(ctx, m.upload, p.Number, v, from, to)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A semaphore has the slots of copies, which are none of the limiter's: their bytes do not go the way to S3. It holds one for each slot in use.
type semaphore chan struct{}

// Acquire implements slots.
func (s semaphore) Acquire(ctx, until context.Context) bool {
	select {
	case s <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-until.Done():
	}
	return false
}

// ReleasePart implements slots.
func (s semaphore) ReleasePart(time.Time, int64) { <-s }

// outlive returns a context for a request that ends with another one, and some time later when all of the request has been sent: S3 does
// then what it was asked to, whether or not anybody waits for the answer, and a part that is made after its upload was aborted may
// stay.
func outlive(ctx context.Context, delay time.Duration, sent func() bool) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if sent() {
			_ = s3api.Sleep(longer, delay)
		}
		cancel()
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// wait waits for all parts.
func (m *multipart) wait() error {
	arrived := make(chan error, 1)
	go func() { arrived <- m.group.Wait() }()
	select {
	case err := <-arrived:
		return err
	case <-m.until.Done():
		return context.Cause(m.until)
	}
}

// complete makes the object visible, of so many bytes, and returns its ETag; wait has returned nil.
func (m *multipart) complete(ctx context.Context, size int64, c s3api.Condition) (etag string, err error) {
	etag, seen, err := m.bucket.CompleteUpload(ctx, m.upload, m.parts, size, c)
	m.cancel()
	switch {
	case err == nil && !seen:
		m.entry.Remove(ctx)
	case err == nil:
		m.abort() // for there may have been an object like it before
	}
	return etag, err
}

// abort removes the upload and its parts. It waits for those on their way, because a part that arrives after the upload was
// aborted may stay. What cannot be removed now stays in the journal.
func (m *multipart) abort() {
	m.cancel()
	_ = m.group.Wait() // why it failed is known to whoever aborts
	ctx, done := context.WithTimeout(context.WithoutCancel(m.ctx), abortTimeout)
	defer done()
	err := m.entry.End(ctx)
	if errors.Is(err, journal.ErrTakenOver) {
		m.entry.Leave()
		return
	}
	if err == nil {
		err = m.bucket.AbortUpload(ctx, m.upload)
	}
	if err != nil {
		m.log.Warn("multipart upload could not be aborted", "bucket", m.bucket.Name, "key", m.upload.Key, "upload", m.upload.ID, "error", err)
		m.entry.Leave()
		return
	}
	m.entry.Remove(ctx)
}

// drain waits for the parts on their way, no longer than ctx, and lets the upload be.
func (m *multipart) drain(ctx context.Context) error {
	stop := context.AfterFunc(ctx, m.cancel)
	defer stop()
	defer m.cancel()
	return m.group.Wait()
}
