package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

const (
	// partGrowth makes a part at least this fraction of what precedes it. From the smallest parts that S3 takes, 5 MiB each, 10,000
	// then reach 5 TiB; the last of them are of 4 GiB, which S3 takes too.
	partGrowth = 1280

	// copyPartSize is how much is copied by one request: little enough to copy an object by several at a time.
	copyPartSize = 1 << 30

	// createTimeout and abortTimeout bound the requests that outlive the session, because without them an upload could stay open.
	createTimeout = 30 * time.Second
	abortTimeout  = 30 * time.Second

	// abortAttempts is how often an upload is aborted before it is left to the bucket's lifecycle rules. abortDelay is waited
	// after the first, and twice as long after each further.
	abortAttempts = 4
	abortDelay    = 200 * time.Millisecond
)

// partSizeAt returns the size in bytes of the part that begins at offset, where the first has size. Nothing else cuts an upload, so
// that a part of a number always has the same place.
func partSizeAt(b *Budget, size, offset int64) int64 {
	return min(max(size, offset/partGrowth), maxPartSize, b.Limit())
}

// A multipart is an upload by parts, several at a time, that ends with complete, abort or drain. Its methods are for one
// goroutine.
type multipart struct {
	bucket *bucket
	log    *slog.Logger
	key    string
	id     string
	entry  *entry          // in the ledger
	until  context.Context // ends when nobody waits for parts any more
	ctx    context.Context // of the parts; it ends with the first that fails
	cancel context.CancelFunc
	group  *errgroup.Group
	sender *sender
	parts  []*types.CompletedPart // ETags are there when the group has ended
	number int32                  // of the last part
	lanes  lanes                  // of parts that are copied, nil for its own
	// checksum is the algorithm of the sum that each part comes with, empty for none.
	checksum types.ChecksumAlgorithm
}

// A plan says what an upload is for.
type plan struct {
	key      string
	owner    string                  // who may resume it, empty for nobody
	partSize int64                   // what its parts are cut by, for whoever resumes it
	client   *clientWait             // whose bytes it waits for, nil without an owner
	lost     context.CancelCauseFunc // ends it when another session has taken it over
}

// startMultipart begins an upload, which ends with ctx.
func (f *Fs) startMultipart(ctx context.Context, key string, a *attributes) (*multipart, error) {
	in := &s3.CreateMultipartUploadInput{}
	a.create(in)
	ctx, lost := context.WithCancelCause(ctx)
	m, err := f.createMultipart(ctx, ctx, plan{key: key, partSize: f.opts.PartSize, lost: lost}, in)
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
func (f *Fs) createMultipart(until, ctx context.Context, p plan, in *s3.CreateMultipartUploadInput) (_ *multipart, err error) {
	if err := context.Cause(until); err != nil {
		return nil, err
	}
	var e *entry
	if l := f.opts.Ledger; l != nil {
		e = l.enter(until, l.newRecord(p.owner, p.key, p.partSize), p.client, p.lost)
		defer func() {
			if err != nil {
				e.abandon(ctx, err)
			}
		}()
	}
	// Not cancelled once begun: an upload whose ID got lost could not be aborted.
	createCtx, done := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer done()
	in.Bucket, in.Key = &f.bucket.name, &p.key
	begin := time.Now()
	out, err := f.bucket.client.CreateMultipartUpload(createCtx, in, repeatable, func(o *s3.Options) {
		if !f.bucket.sendsChecksums(o) && f.opts.Objects.Checksum == "" {
			in.ChecksumAlgorithm = ""
			withoutChecksum(o)
		}
	})
	if err != nil {
		return nil, s3errors.FromSDK(err)
	}
	if out.UploadId == nil {
		return nil, s3errors.FromSDK(s3errors.ErrNoResult)
	}
	f.route.Answered(time.Since(begin))
	m := f.multipart(until, ctx, p.key, *out.UploadId)
	m.checksum, m.entry = in.ChecksumAlgorithm, e
	e.named(until, m.id)
	return m, nil
}

// multipart is an upload that has begun.
func (f *Fs) multipart(until, ctx context.Context, key, id string) *multipart {
	m := &multipart{
		bucket: f.bucket, log: f.log, key: key, id: id, until: until, sender: f.route.sender(f.opts.Concurrency), lanes: f.lanes,
	}
	ctx, m.cancel = context.WithCancel(ctx)
	m.group, m.ctx = errgroup.WithContext(ctx)
	return m
}

// A place is where a part is while it is under way.
type place interface {
	// take waits until the place is free, no longer than both contexts last, and tells whether it is.
	take(ctx, until context.Context) bool

	// leave frees it for another part. S3 has taken so many bytes of this one, since begin.
	leave(begin time.Time, bytes int64)
}

// add lets transfer bring the next part, of so many bytes, to S3, and say what it has answered. It waits until there is a place.
func (m *multipart) add(p place, bytes int64, transfer func(part *types.CompletedPart) error) error {
	if m.number >= maxParts {
		m.log.Warn("upload needs more parts than S3 takes; where all must be of one size a larger part_size helps",
			"bucket", m.bucket.name, "key", m.key, "parts", maxParts, "equal", !m.bucket.profile.UnequalParts)
		return syscall.EFBIG
	}
	if err := m.ended(); err != nil {
		return err
	}
	if !p.take(m.ctx, m.until) {
		return m.ended()
	}
	m.number++
	part := &types.CompletedPart{PartNumber: aws.Int32(m.number)}
	m.parts = append(m.parts, part)
	begin := time.Now()
	m.group.Go(func() error {
		err := transfer(part)
		if err != nil {
			bytes = 0
		}
		p.leave(begin, bytes)
		return err
	})
	return nil
}

// await waits until another part is worth filling.
func (m *multipart) await() error {
	if !m.sender.mayFill(m.ctx, m.until) {
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
	return m.add(m.sender, b.Len(), func(part *types.CompletedPart) error {
		defer done()
		body := b.Body()
		ctx, stop := outlive(m.ctx, abortTimeout, body.Sent)
		defer stop()
		in := &s3.UploadPartInput{
			Bucket: &m.bucket.name, Key: &m.key, UploadId: &m.id, PartNumber: part.PartNumber, Body: body,
		}
		opts := []func(*s3.Options){withoutChecksum, withoutQuestion}
		switch m.checksum {
		case "":
		case checksumAlgorithm:
			in.ChecksumCRC32C = b.Checksum()
			opts = []func(*s3.Options){unsigned, withoutQuestion}
		default:
			in.ChecksumAlgorithm = m.checksum // the SDK computes it
		}
		out, err := m.bucket.client.UploadPart(ctx, in, opts...)
		if err != nil {
			return s3errors.FromSDK(err)
		}
		part.ETag, part.ChecksumCRC32C = out.ETag, in.ChecksumCRC32C
		part.ChecksumCRC32, part.ChecksumCRC64NVME = out.ChecksumCRC32, out.ChecksumCRC64NVME
		return nil
	})
}

// withoutQuestion keeps the SDK from asking S3 before each part whether it would take it, which costs the time of a request. S3 has
// just taken the upload.
func withoutQuestion(o *s3.Options) { o.ContinueHeaderThresholdBytes = -1 }

// copy adds the first length bytes of a version, in parts of about size bytes, without reading them. They must be as many as
// the smallest part has. A part that S3 has begun to copy is waited for whatever happens: S3 would not hear that nobody wants it any
// longer, and leave it behind when the upload was aborted before.
func (m *multipart) copy(v version, length, size int64) error {
	lanes := m.lanes
	if lanes == nil {
		lanes = make(chan struct{}, copyConcurrency)
	}
	count, begin := m.bucket.profile.Parts(length, size)
	for i := range count {
		from, to := begin(i), begin(i+1)
		err := m.add(lanes, to-from, func(part *types.CompletedPart) error {
			ctx, done := outlive(m.ctx, abortTimeout, func() bool { return true })
			defer done()
			in := &s3.UploadPartCopyInput{
				Bucket: &m.bucket.name, Key: &m.key, UploadId: &m.id, PartNumber: part.PartNumber,
				CopySource:        v.copySource(),
				CopySourceIfMatch: condition{etag: v.etag}.ifMatch(),
			}
			if to-from < v.size { // S3 copies no range of an object below 5 MiB
				in.CopySourceRange = aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1))
			}
			out, err := m.bucket.client.UploadPartCopy(ctx, in, repeatable)
			if err != nil {
				return s3errors.FromSDK(err)
			}
			if out.CopyPartResult == nil {
				return s3errors.FromSDK(s3errors.ErrNoResult)
			}
			part.ETag = out.CopyPartResult.ETag
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lanes are places for copies, which are none of the queue's: their bytes do not go the way to S3. They hold one for each that is taken.
type lanes chan struct{}

func (l lanes) take(ctx, until context.Context) bool {
	select {
	case l <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-until.Done():
	}
	return false
}

func (l lanes) leave(time.Time, int64) { <-l }

// outlive returns a context for a request that ends with another one, and some time later when all of the request has been sent: S3 does
// then what it was asked to, whether or not anybody waits for the answer, and a part that is made after its upload was aborted may
// stay.
func outlive(ctx context.Context, delay time.Duration, sent func() bool) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if sent() {
			_ = sleep(longer, delay)
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
		m.sender.close()
		return err
	case <-m.until.Done():
		return context.Cause(m.until)
	}
}

// complete makes the object visible, of so many bytes, and returns its ETag; wait has returned nil.
func (m *multipart) complete(ctx context.Context, size int64, c condition) (etag string, err error) {
	parts := make([]types.CompletedPart, len(m.parts))
	for i, part := range m.parts {
		parts[i] = *part
	}
	var tries attempts // S3 dates the object from when the upload began
	out, err := m.bucket.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &m.bucket.name, Key: &m.key, UploadId: &m.id,
		IfMatch: c.ifMatch(), IfNoneMatch: c.ifNoneMatch(),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}, tries.counted)
	m.cancel()
	if err == nil {
		m.entry.remove(ctx)
		return aws.ToString(out.ETag), nil
	}
	gone := tries.count > 1 && s3errors.IsNoSuchUpload(err)
	if etag, err = m.bucket.settle(ctx, m.key, &tries, err, completed(parts, size, gone)); err == nil {
		m.abort() // for there may have been an object like it before
	}
	return etag, err
}

// abort removes the upload and its parts. It waits for those on their way, because a part that arrives after the upload was
// aborted may stay. What cannot be removed now stays in the ledger.
func (m *multipart) abort() {
	m.cancel()
	_ = m.group.Wait() // why it failed is known to whoever aborts
	m.sender.close()
	ctx, done := context.WithTimeout(context.WithoutCancel(m.ctx), abortTimeout)
	defer done()
	err := m.entry.end(ctx)
	if errors.Is(err, errTakenOver) {
		m.entry.leave()
		return
	}
	if err == nil {
		err = m.bucket.abort(ctx, m.key, m.id)
	}
	if err != nil {
		m.log.Warn("multipart upload could not be aborted", "bucket", m.bucket.name, "key", m.key, "upload", m.id, "error", err)
		m.entry.leave()
		return
	}
	m.entry.remove(ctx)
}

// drain waits for the parts on their way, no longer than ctx, and lets the upload be.
func (m *multipart) drain(ctx context.Context) error {
	stop := context.AfterFunc(ctx, m.cancel)
	defer stop()
	defer m.cancel()
	defer m.sender.close()
	return m.group.Wait()
}
