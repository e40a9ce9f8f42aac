package upload

import (
	"context"
	"io"
	"io/fs"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// commitTimeout bounds the request that makes an upload visible. S3 may take minutes to assemble many parts.
const commitTimeout = 10 * time.Minute

// Close publishes the file, unless writing failed or was aborted. If it returns nil, S3 has confirmed the object. After
// an error, the bucket contains at most an interrupted upload that the owner can resume, with one exception: if the
// response to the publishing request was lost and a check of the object was inconclusive, the complete object may
// exist.
func (w *Writer) Close() error {
	if w.phase.isOver() {
		return s3error.PathError("close", w.name, fs.ErrClosed)
	}
	err := w.err
	if err == nil {
		err = w.finish()
	}
	// in these two phases, the error of S3 shows whether the object exists
	if w.phase != committing && w.phase != copying {
		err = w.cause(err)
	}
	w.change.End(err)
	w.endCopy()
	w.phase = w.end(err)
	w.active.End()
	w.inspection.Close()
	w.part.Release()
	w.cancel(nil)
	return s3error.PathError("close", w.name, err)
}

// end keeps or removes the data of an upload that has ended with err, and returns its final phase.
func (w *Writer) end(err error) phase {
	switch {
	case err == nil && w.phase == opened: // the file is unchanged, so pending uploads of it stay
		return stored
	case err == nil:
		w.endPending()
		return stored
	case w.phase == opened && w.resumed.size() > 0 && !w.active.Changed(): // the pending upload is untouched
		return interrupted
	case w.phase == opened && w.resumed.size() > 0:
		return ending
	case w.owner != "" && canResumeAfter(err):
		return w.interrupt(err)
	}
	return w.discard()
}

// finish publishes the file.
func (w *Writer) finish() error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	switch {
	case w.phase != opened:
	case w.kept.Key != "" && w.kept.end == w.kept.Size:
		w.offset, w.stored.ETag = w.kept.end, w.kept.ETag
		return nil // the object stays unchanged
	case w.resumed.size() > 0:
		return &ResumeError{Size: w.offset} // a pending upload always lacks at least one byte
	}
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.change.Grow(w.ctx, max(w.offset, w.kept.end)); err != nil {
		return err
	}
	if err := w.copyTail(); err != nil {
		return err
	}
	if w.kind == oneRequest {
		return w.commit(w.put)
	}
	if w.part.Len() > 0 {
		if w.part.Full() && w.owner != "" { // a session that resumes the upload must not count this last part
			if err := w.upload.entry.BoundParts(w.ctx, w.offset-w.part.Len()); err != nil {
				return err
			}
		}
		// keep the buffer, because interrupt may need its bytes
		if err := w.upload.send(w.part, func() {}); err != nil {
			return err
		}
	}
	if err := w.upload.wait(); err != nil {
		return err
	}
	if w.kind == stagedParts {
		return w.commitStaged()
	}
	return w.commit(w.completeParts)
}

// commit calls publish, which makes the object visible, unless the session has ended or the inspector rejects the file.
//
// Once sent, the request is not canceled when the session ends: S3 may perform it anyway, and only the response shows
// whether it did. The client has sent the whole file, so the object is correct even if the client has disconnected.
func (w *Writer) commit(publish func(context.Context) (s3api.Result, error)) error {
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
	w.phase = committing
	var err error
	w.stored, err = publish(ctx)
	w.phase = w.phase.settled(err, live, stored)
	return w.condition.Failed(err)
}

// completeParts publishes a multipart upload.
func (w *Writer) completeParts(ctx context.Context) (s3api.Result, error) {
	if err := w.upload.entry.ConfirmHolder(ctx); err != nil {
		return s3api.Result{}, err
	}
	w.change.Send(w.offset)
	made, err := w.upload.complete(ctx, w.condition, w.isOwn)
	if err == nil {
		w.u.StoreTags(ctx, w.key, &w.attributes)
		w.upload.entry.Remove(ctx)
	}
	return made, err
}

// isOwn reports whether no other session can have completed the upload, neither before this session nor since.
func (w *Writer) isOwn(ctx context.Context) bool {
	return w.resumed.Upload == "" && w.upload.entry.IsHolder(ctx)
}

// put publishes the buffer with a single request.
func (w *Writer) put(ctx context.Context) (s3api.Result, error) {
	w.change.Send(w.offset)
	return w.putAs(ctx, w.key, &w.attributes, w.condition)
}

// putAs stores the buffer under the given key.
func (w *Writer) putAs(
	ctx context.Context, key string, a *s3object.Attributes, c s3api.Condition,
) (s3api.Result, error) {
	w.part.Seal()
	return w.u.Bucket.Put(
		ctx, key, a, c, io.NewSectionReader(w.part, 0, w.part.Len()),
		s3api.Sums{CRC32C: w.part.Checksum(), SHA256: w.promise.checksum()})
}

// cause returns the reason for which the upload was aborted, if it was. Otherwise it returns err.
func (w *Writer) cause(err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	return err
}
