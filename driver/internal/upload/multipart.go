package upload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// copyConcurrency is the maximum number of parts of one object that S3 copies in parallel. Their bytes do not pass
	// through this process.
	copyConcurrency = 16

	// abortTimeout limits the cleanup requests that continue after the session has ended.
	abortTimeout = 30 * time.Second

	// createTimeout limits all attempts to create an upload together, because the client is waiting.
	createTimeout = time.Minute
)

// A multipart is a multipart upload whose parts are sent in parallel. It ends with complete, abort or drain. Only one
// goroutine may call its methods.
type multipart struct {
	bucket  *s3api.Bucket
	log     *slog.Logger
	upload  s3api.Upload
	entry   *journal.Entry  // nil without a journal
	session context.Context // when it ends, the session stops waiting for parts
	ctx     context.Context // for the requests; canceled when a part fails

	cancel   context.CancelFunc
	group    *errgroup.Group
	partSize int64         // bytes of the first part
	parts    []*s3api.Part // the ETags are set once the group has finished
	number   int32         // number of the last part
	bytes    int64         // total size of all parts
	last     *partResult   // result of the part added last, nil before the first part
	slots    *slots        // limits the parts that this process sends
	copies   *slots        // limits the parts that S3 copies, whose bytes do not pass through this process
}

// uploadOptions describe an upload that is about to be created.
type uploadOptions struct {
	key      string
	owner    string // the user that may resume the upload, if any
	partSize int64  // bytes of the first part
	uploaded bool   // this process sends the parts; otherwise S3 copies them
	kind     kind   // inParts or stagedParts; stagedParts needs a journal

	began  time.Time               // when the first session opened the file
	client *journal.ClientWait     // nil without an owner
	cancel context.CancelCauseFunc // called when another session took over the upload
}

// createMultipart creates an upload and then writes its journal record, which contains the upload ID. until is the
// context of the session. ctx is the context for sending parts, which may last longer.
//
// If the upload ID is lost, because the response was lost or this server crashed, an upload without parts remains in
// S3. It cannot be distinguished from an upload of other software, so it is left to the lifecycle rules of the bucket.
func (u *Uploader) createMultipart(
	until, ctx context.Context, p uploadOptions, a *s3object.Attributes,
) (*multipart, error) {
	if err := context.Cause(until); err != nil {
		return nil, err
	}
	var record journal.Record
	key, name := p.key, "" // the name in the metadata lets a session that resumes the upload recognize the object
	if u.Journal != nil {
		record = u.Journal.NewRecord(p.owner, p.key, p.partSize, p.began)
		record.Staged = p.kind == stagedParts
		of := record.MultipartUpload()
		key, name = of.Key, of.Name
	}
	// This request is never canceled, because an upload whose ID is unknown could not be aborted.
	createCtx, done := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer done()
	created, err := u.Bucket.CreateUpload(
		createCtx, key, name, a, s3api.PartChecksums{Uploaded: p.uploaded, Configured: u.Objects.Checksum != ""})
	if err != nil {
		return nil, err
	}
	m := u.multipart(until, ctx, created, p.partSize)
	if j := u.Journal; j != nil {
		record.Upload = created.ID
		m.entry = j.Create(until, record, p.client, p.cancel)
	}
	return m, nil
}

// multipart wraps an upload that S3 has created.
func (u *Uploader) multipart(until, ctx context.Context, begun s3api.Upload, partSize int64) *multipart {
	m := &multipart{
		partSize: partSize,
		bucket:   u.Bucket, log: u.Log, upload: begun, session: until, slots: u.Limiter.join(),
		copies: newSlots(copyConcurrency, nil),
	}
	if u.copySlots != nil {
		m.copies.own = u.copySlots
	}
	ctx, m.cancel = context.WithCancel(ctx)
	m.group, m.ctx = errgroup.WithContext(ctx)
	return m
}

// add waits for a slot, and then calls transfer for the next part in a new goroutine. The part has the given number of
// bytes. add does not wait for transfer to return.
func (m *multipart) add(s *slots, bytes int64, transfer func(ctx context.Context, p *s3api.Part) error) error {
	if limit := m.bucket.Profile.MaxParts(); int64(m.number) >= limit {
		return m.tooManyParts(limit, m.bytes, nil)
	}
	if err := m.reserve(s); err != nil {
		return err
	}
	s.reserved = false
	m.number++
	part := &s3api.Part{Number: m.number}
	m.parts = append(m.parts, part)
	size := m.bytes // without this part
	m.bytes += bytes
	previous, result := m.last, &partResult{done: make(chan struct{})}
	m.last = result
	m.group.Go(func() error {
		defer s.release()
		defer close(result.done)
		result.err = panics.Catch(func() error { return transfer(m.ctx, part) })
		if previous != nil && refusesNumber(result.err) {
			result.err = m.explainRefusal(part, size, previous, result.err)
		}
		return result.err
	})
	return nil
}

// A partResult is the result of a part, available when done is closed.
type partResult struct {
	done chan struct{}
	err  error
}

// explainRefusal returns the error for a part that S3 may have rejected because of its number. It waits for the
// previous part: if S3 accepts that one, it accepts no more parts than these.
func (m *multipart) explainRefusal(part *s3api.Part, size int64, previous *partResult, err error) error {
	select {
	case <-previous.done:
	case <-m.ctx.Done():
		return err
	}
	if previous.err != nil {
		return previous.err
	}
	return m.tooManyParts(int64(part.Number)-1, size, err)
}

// reserve waits for a slot for the next part, unless one is already reserved. A slot that is still reserved when the
// upload ends need not be returned. It is then a slot of the upload itself, because shared slots are returned first.
func (m *multipart) reserve(s *slots) error {
	if err := m.stopReason(); err != nil || s.reserved {
		return err
	}
	if !s.acquire(m.ctx, m.session) {
		return m.stopReason()
	}
	s.reserved = true
	return nil
}

// refusesNumber reports whether S3 may have rejected a part because of its number. If S3 has accepted the part before,
// the number is the only possible reason. Most servers return InvalidArgument.
func refusesNumber(err error) bool {
	return s3error.HasCode(err, "InvalidArgument", "InvalidPart", "InvalidPartNumber", "TooManyParts")
}

// A PartsError is returned if a file needs more parts than S3 accepts. It wraps EFBIG, so the upload is not kept for
// its owner to resume.
type PartsError struct {
	Parts, PartSize, Bytes int64 // the limit of parts, the configured size, and the largest file
	Equal                  bool  // all parts must have the same size
	cause                  error // the error of S3, nil if the limit comes from the profile
}

// Error returns a text for the log. The client gets a reply of its own.
func (e *PartsError) Error() string {
	text := fmt.Sprintf("file needs more than the %d parts that S3 accepts: configure a part_size above %d bytes",
		e.Parts, e.PartSize)
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns EFBIG. It hides the cause, so that the client gets a reply about the size of the file.
func (*PartsError) Unwrap() error { return syscall.EFBIG }

var _ contract.PartsError = (*PartsError)(nil)

// PartsLimit implements [contract.PartsError].
func (e *PartsError) PartsLimit() (parts, partSize, bytes int64, equal bool) {
	return e.Parts, e.PartSize, e.Bytes, e.Equal
}

// tooManyParts returns the error for an upload that has reached the limit of parts.
func (m *multipart) tooManyParts(parts, bytes int64, cause error) error {
	equal := !m.bucket.Profile.UnequalParts
	e := &PartsError{Parts: parts, PartSize: m.partSize, Bytes: bytes, Equal: equal, cause: cause}
	m.log.Warn("upload needs more parts than S3 accepts; configure a larger part_size",
		"bucket", m.bucket.Name, "key", m.upload.Key, "parts", parts, "part_size", m.partSize, "bytes", bytes,
		"profile", m.bucket.Profile.Name, "err", cause)
	return e
}

// waitToFill waits until the next part can be sent, so that the session does not fill buffers that only wait.
func (m *multipart) waitToFill() error { return m.reserve(m.slots) }

// stopReason returns the reason why the upload sends no more parts, or nil if it still does.
func (m *multipart) stopReason() error {
	if err := context.Cause(m.ctx); err != nil {
		return err
	}
	return context.Cause(m.session)
}

// send adds the bytes of a buffer as a part and calls done after the request. If send returns an error, the buffer
// still belongs to the caller and done is not called. The error may come from an earlier part.
func (m *multipart) send(b *membudget.Buffer, done func()) error {
	b.Seal()
	return m.add(m.slots, b.Len(), func(ctx context.Context, p *s3api.Part) (err error) {
		defer done()
		body := b.Body()
		ctx, stop := outlive(ctx, abortTimeout, body.Sent)
		defer stop()
		*p, err = m.bucket.UploadPart(ctx, m.upload, p.Number, body, b.Checksum())
		return err
	})
}

// copy makes S3 copy the bytes [first, last) of a version, in parts of about size bytes. The range must not be smaller
// than the smallest part. S3 does not notice when a copy request is canceled, and a part that it finishes after the
// abort of the upload would stay in the bucket. A copy that has begun is therefore always awaited.
func (m *multipart) copy(v s3api.Version, first, last, size int64) error {
	count, begin := m.bucket.Profile.Parts(last-first, size)
	for i := range count {
		from, to := first+begin(i), first+begin(i+1)
		err := m.add(m.copies, to-from, func(ctx context.Context, p *s3api.Part) (err error) {
			ctx, done := outlive(ctx, abortTimeout, func() bool { return true })
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

// outlive returns a context for a request that ends with ctx, or, if the whole request has been sent by then, after a
// further delay. S3 performs such a request even if the connection is closed, and a part that it stores after the abort
// of the upload may stay in the bucket.
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

// wait waits until all parts have ended and returns the first error.
func (m *multipart) wait() error {
	select {
	case err := <-panics.Start(m.group.Wait):
		return err
	case <-m.session.Done():
		return context.Cause(m.session)
	}
}

// complete turns the parts into the object. The caller must have waited for all parts, and removes the record
// afterwards. The request is not canceled if the session ends or if another copy in the same directory fails: S3 may
// perform it anyway, and only the response shows whether it did. isOwn reports whether no other session can have
// completed the upload.
func (m *multipart) complete(
	ctx context.Context, c s3api.Condition, isOwn func(context.Context) bool,
) (s3api.Result, error) {
	if err := context.Cause(ctx); err != nil {
		return s3api.Result{}, err
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer done()
	defer m.cancel()
	return m.bucket.CompleteUpload(ctx, m.upload, m.parts, c, isOwn)
}

// abort removes the data of an upload in phase p from S3: the upload with its parts, or the staged object. It waits for
// the requests in flight, because a part that arrives after the abort may stay in the bucket. If S3 does not respond,
// or has not responded to the request that completes the upload, abort leaves the upload to a sweep.
//
// abort returns the new phase of the upload.
func (m *multipart) abort(p phase) phase {
	m.cancel()
	_ = m.group.Wait() // the caller already has the error
	ctx, done := context.WithTimeout(context.WithoutCancel(m.ctx), abortTimeout)
	defer done()
	err := m.entry.BeginAbort(ctx)
	if errors.Is(err, journal.ErrTakenOver) {
		m.entry.Release()
		return takenOver
	}
	left := ending
	switch {
	case err != nil:
		left = abandoned
	case p == committing:
		err = errMayComplete
	case p == assembled || p == copying:
		err = m.bucket.Delete(ctx, m.upload.Key)
	default:
		err = m.bucket.AbortUpload(ctx, m.upload)
	}
	if err != nil {
		m.entry.Release()
		m.log.Warn("multipart upload could not be aborted; a later sweep aborts it if it has a record in the upload journal",
			"bucket", m.bucket.Name, "key", m.upload.Key, "upload", m.upload.ID, "recorded", m.entry.Recorded(), "err", err)
		return left
	}
	m.entry.Remove(ctx)
	return ending
}

// errMayComplete is logged if an upload is not aborted because the response to its completion was lost.
var errMayComplete = errors.New("S3 may still complete the upload")

// drain waits up to interruptTimeout for the requests in flight. The upload stays open. Afterwards the parts that S3
// has confirmed have an ETag.
func (m *multipart) drain(ctx context.Context) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), interruptTimeout)
	defer done()
	stop := context.AfterFunc(ctx, m.cancel)
	defer stop()
	defer m.cancel()
	_ = m.group.Wait() // the caller already has the error
}
