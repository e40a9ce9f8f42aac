package upload

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// commitTimeout bounds the request that makes an upload visible. S3 may take minutes to assemble many parts.
const commitTimeout = 10 * time.Minute

// Close publishes the file, unless writing failed or was aborted. When it returns nil, S3 has confirmed the object.
// After an error the bucket has at most an interrupted upload that the owner can resume. There is one exception: the
// answer to the request that publishes is lost, and a look at the object shows nothing. Then the complete object may
// be there.
func (w *Writer) Close() error {
	if w.closed {
		return s3error.PathError("close", w.name, fs.ErrClosed)
	}
	w.closed = true
	err := w.err
	if err == nil {
		err = w.finish()
	}
	if w.phase != asked { // afterwards only S3 decides whether there is an object
		err = w.cause(err)
	}
	w.change.End(err)
	if w.endCopy != nil {
		w.endCopy()
	}
	switch {
	case err == nil && w.phase != asked: // nothing was appended to the file, so it replaces no upload
	case err == nil:
		w.phase = stored
		w.endPending()
	case w.resumed != nil && w.phase == opened: // no byte has come, and the owner can resume the upload as before
		w.keepIf(!w.open.Changed())
	case w.canResume() && canResumeAfter(err):
		w.interrupt(err)
	default:
		w.discard()
	}
	if w.open != nil {
		w.open.End()
	}
	if w.inspection != nil {
		w.inspection.Close()
	}
	if w.part != nil {
		w.part.Release()
	}
	w.cancel(nil)
	return s3error.PathError("close", w.name, err)
}

// finish publishes the file.
func (w *Writer) finish() error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	switch {
	case w.phase != opened:
	case w.head.Key != "" && w.keptEnd == w.head.Size:
		w.offset, w.stored.ETag = w.keptEnd, w.head.ETag
		return nil // the object stays as it is
	case w.resumed != nil:
		return &ResumeError{Size: w.offset} // the pending upload lacks at least a byte
	}
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.change.Grow(w.ctx, max(w.offset, w.keptEnd)); err != nil {
		return err
	}
	if err := w.copyTail(); err != nil {
		return err
	}
	if w.kind() == oneRequest {
		return w.commit(w.put)
	}
	if w.part != nil && w.part.Len() > 0 {
		if w.part.Full() && w.canResume() { // a session that resumes the upload must not continue after the last part
			if err := w.upload.entry.BoundParts(w.ctx, w.offset-w.part.Len()); err != nil {
				return err
			}
		}
		// done does not release the buffer: interrupt may need its bytes
		if err := w.upload.send(w.part, func() {}); err != nil {
			return err
		}
	}
	if err := w.upload.wait(); err != nil {
		return err
	}
	if w.kind() == stagedParts {
		return w.commitStaged()
	}
	return w.commit(func(ctx context.Context) (s3api.Stored, error) {
		if err := w.upload.entry.ConfirmHolder(ctx); err != nil {
			return s3api.Stored{}, err
		}
		w.change.Send(w.offset)
		return w.upload.complete(ctx, w.condition)
	})
}

// commit lets publish make the object visible, if the session still wants it, and the inspector accepts it.
//
// The end of the session does not cancel this request, because S3 may perform it anyway, and only the answer tells.
// The client has sent the whole file, so the object is right even if the client has disconnected.
func (w *Writer) commit(publish func(context.Context) (s3api.Stored, error)) error {
	if err := w.u.BeforeCommit(w.ctx); err != nil {
		return err
	}
	if err := w.verdict(); err != nil {
		return w.quarantineBuffer(err)
	}
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), commitTimeout)
	defer done()
	w.phase = asked
	var err error
	w.stored, err = publish(ctx)
	if w.exclusive {
		return w.condition.Failed(err)
	}
	return err
}

// put makes an object of the bytes in the buffer.
func (w *Writer) put(ctx context.Context) (s3api.Stored, error) {
	w.change.Send(w.offset)
	return w.putAs(ctx, w.key, w.condition)
}

// putAs is put under any key.
func (w *Writer) putAs(ctx context.Context, key string, c s3api.Condition) (s3api.Stored, error) {
	if w.part == nil {
		return w.u.Bucket.Put(ctx, key, &w.attributes, c, bytes.NewReader(nil), nil)
	}
	w.part.Seal()
	return w.u.Bucket.Put(
		ctx, key, &w.attributes, c, io.NewSectionReader(w.part, 0, w.part.Len()), w.part.Checksum())
}

// cause returns why the upload was ended, if it was. Otherwise it returns err.
func (w *Writer) cause(err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	return err
}
