package upload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
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
	// copyConcurrency is how many parts of one object S3 copies in parallel. They cost this process nothing.
	copyConcurrency = 16

	// abortTimeout bounds the requests that outlive the session, because without them an upload could stay open.
	abortTimeout = 30 * time.Second

	// createTimeout bounds the attempts to create an upload. Their client waits for all of them.
	createTimeout = time.Minute
)

// A multipart is a multipart upload, with several parts in parallel. It ends with complete, abort or drain. Only one
// goroutine may call its methods.
type multipart struct {
	bucket  *s3api.Bucket
	log     *slog.Logger
	upload  s3api.Upload
	entry   *journal.Entry  // in the journal
	session context.Context // of the session; when it ends, the session waits for parts no more
	ctx     context.Context // of the requests; it ends when the first part fails

	cancel   context.CancelFunc
	group    *errgroup.Group
	partSize int64         // bytes of the first part
	parts    []*s3api.Part // with ETags once the group has ended
	number   int32         // of the last part
	bytes    int64         // of all parts
	taken    atomic.Bool   // S3 has taken a part
	slots    *slots        // of the parts that this process sends
	copies   *slots        // of the parts that S3 copies, whose bytes do not pass between this process and S3
}

// uploadOptions describe an upload that is about to be created.
type uploadOptions struct {
	key      string
	owner    string // the user that may resume the upload, empty for none
	partSize int64  // bytes of the first part
	uploaded bool   // this process sends the parts; otherwise S3 copies them
	kind     kind   // inParts or stagedParts; the latter needs a journal

	began  time.Time               // of the file
	client *journal.ClientWait     // since when the upload waits for bytes, nil without an owner
	cancel context.CancelCauseFunc // ends the upload when another session has taken it over
}

// createMultipart creates an upload, then writes its record, which names it. The first context is that of the
// session. The second one is that of the parts, and may last longer.
//
// Where S3 does not tell the ID, because the answer is lost or this server dies, an upload without parts stays.
// Nothing tells it from one of other software, so it is left to the bucket's lifecycle rules.
func (u *Uploader) createMultipart(
	until, ctx context.Context, p uploadOptions, a *s3object.Attributes,
) (*multipart, error) {
	if err := context.Cause(until); err != nil {
		return nil, err
	}
	var record journal.Record
	key, name := p.key, "" // of the object, and of the request, by which a resuming session knows the object too
	if u.Journal != nil {
		record = u.Journal.NewRecord(p.owner, p.key, p.partSize, p.began)
		record.Staged = p.kind == stagedParts
		of := record.MultipartUpload()
		key, name = of.Key, of.Name
	}
	// This request is never cancelled, because the server could not abort an upload whose ID it does not know.
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
		m.entry = j.Enter(until, record, p.client, p.cancel)
	}
	return m, nil
}

// multipart returns the state of an upload that S3 has created.
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

// add waits for a slot, and starts a goroutine that calls transfer for the next part, of so many bytes. It does not
// wait for transfer.
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
	before := m.bytes
	m.bytes += bytes
	m.group.Go(func() error {
		defer s.leave()
		err := panics.Catch(func() error { return transfer(m.ctx, part) })
		switch {
		case err == nil:
			m.taken.Store(true)
		case m.taken.Load() && refusesNumber(err):
			err = m.tooManyParts(int64(part.Number)-1, before, err)
		}
		return err
	})
	return nil
}

// reserve waits for a slot for the next part, unless one is reserved already. A slot that is reserved when the upload
// ends need not be returned: it is the upload's own by then, because shared ones are returned first.
func (m *multipart) reserve(s *slots) error {
	if err := m.ended(); err != nil || s.reserved {
		return err
	}
	if !s.take(m.ctx, m.session) {
		return m.ended()
	}
	s.reserved = true
	return nil
}

// refusesNumber reports whether S3 may have rejected a part because of its number. If S3 has accepted other parts of
// the upload, nothing else about the part can be wrong. Most servers return InvalidArgument.
func refusesNumber(err error) bool {
	return s3error.HasCode(err, "InvalidArgument", "InvalidPart", "InvalidPartNumber", "TooManyParts")
}

// A PartsError says that a file needs more parts than S3 takes. It wraps EFBIG, so that no store keeps the upload
// for its user to resume.
type PartsError struct {
	Parts, PartSize, Bytes int64 // the limit of parts, the configured size, and the largest file
	Equal                  bool  // all parts have this size
	cause                  error // nil if the profile has the limit
}

// Error is for the log.
func (e *PartsError) Error() string {
	text := fmt.Sprintf("the file needs more than the %d parts that S3 takes: configure a part_size above %d bytes",
		e.Parts, e.PartSize)
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns EFBIG. It hides the cause, so that the reply is not about S3.
func (*PartsError) Unwrap() error { return syscall.EFBIG }

var _ contract.PartsError = (*PartsError)(nil)

// PartsLimit returns the limit for callers that import no driver, such as the one that chooses a reply.
func (e *PartsError) PartsLimit() (parts, partSize, bytes int64, equal bool) {
	return e.Parts, e.PartSize, e.Bytes, e.Equal
}

// tooManyParts returns the error for an upload that has reached the limit of parts.
func (m *multipart) tooManyParts(parts, bytes int64, cause error) error {
	equal := !m.bucket.Profile.UnequalParts
	e := &PartsError{Parts: parts, PartSize: m.partSize, Bytes: bytes, Equal: equal, cause: cause}
	m.log.Warn("upload needs more parts than S3 takes; configure a larger part_size",
		"bucket", m.bucket.Name, "key", m.upload.Key, "parts", parts, "part_size", m.partSize, "bytes", bytes,
		"profile", m.bucket.Profile.Name, "err", cause)
	return e
}

// waitToFill waits until the session may fill another part.
func (m *multipart) waitToFill() error { return m.reserve(m.slots) }

// ended returns why the upload sends no more parts, nil while it does.
func (m *multipart) ended() error {
	if err := context.Cause(m.ctx); err != nil {
		return err
	}
	return context.Cause(m.session)
}

// send adds the bytes of a buffer as a part, and calls done after the request. If send returns an error, the buffer
// still belongs to the caller, and done is not called. The error may be that of an earlier part.
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

// copy lets S3 copy the bytes [first, last) of a version, in parts of about size bytes. They must be as many as the
// smallest part has, at least. The upload always waits for a part that S3 has begun to copy. S3 does not notice a
// cancelled request. After an abort, such a part would stay in the bucket.
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

// outlive returns a context for a request. It ends with ctx, or after a delay if the whole request has been sent. S3
// then performs the request although no session waits for the answer. A part that S3 makes after the abort of its
// upload may stay in the bucket.
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
	select {
	case err := <-panics.Start(m.group.Wait):
		return err
	case <-m.session.Done():
		return context.Cause(m.session)
	}
}

// complete makes the object of the parts. The caller has waited for all of them, and removes the record. Neither the
// end of the session nor the failure of another copy in the same directory ends this request, because S3 may perform it
// anyway, and only the response tells. isOurs reports whether no other session may have completed the upload.
func (m *multipart) complete(
	ctx context.Context, c s3api.Condition, isOurs func(context.Context) bool,
) (s3api.Result, error) {
	if err := context.Cause(ctx); err != nil {
		return s3api.Result{}, err
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer done()
	defer m.cancel()
	return m.bucket.CompleteUpload(ctx, m.upload, m.parts, c, isOurs)
}

// abort removes what S3 has of an upload in a phase: the upload with its parts, or the object that staged parts have
// become. It waits for the requests in flight, because a part that arrives after the abort may stay. It leaves an
// upload to a sweep if S3 does not respond, or was asked to complete it and has not responded.
//
// abort returns the phase in which it leaves the upload.
func (m *multipart) abort(p phase) phase {
	m.cancel()
	_ = m.group.Wait() // the caller knows the error already
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
	case p == asked:
		err = errDoubtful
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

// errDoubtful is why an upload is not aborted.
var errDoubtful = errors.New("S3 may yet complete the upload")

// drain waits for the requests under way, for interruptTimeout at most. The upload stays open. The parts that S3 has
// confirmed have an ETag then.
func (m *multipart) drain(ctx context.Context) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), interruptTimeout)
	defer done()
	stop := context.AfterFunc(ctx, m.cancel)
	defer stop()
	defer m.cancel()
	_ = m.group.Wait() // the caller knows the error already
}
