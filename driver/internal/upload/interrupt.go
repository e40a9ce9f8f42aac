package upload

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// interruptTimeout limits how long a session continues to store received bytes after its client has disconnected.
	interruptTimeout = 20 * time.Second

	// pendingShare is the divisor that yields the number of bytes that all interrupted uploads of an owner may hold
	// together, from the smallest quota that applies.
	pendingShare = 2
)

// canResumeAfter reports whether an upload that ended with this error may be resumed. It may not if the bytes are
// wrong, or if S3 has rejected a request permanently and would therefore reject the resumed upload too.
func canResumeAfter(err error) bool {
	if s3error.IsNoSuchUpload(err) || s3error.Status(err) >= http.StatusBadRequest && !errors.Is(err, syscall.EAGAIN) {
		return false
	}
	return !slices.ContainsFunc(
		[]error{fs.ErrInvalid, fs.ErrExist, syscall.ESTALE, syscall.EFBIG, syscall.EDQUOT, syscall.EILSEQ},
		func(kind error) bool { return errors.Is(err, kind) })
}

// interrupt prepares an upload that failed with cause so that its owner can resume it. It waits for the parts in flight
// and writes the record of the interrupted upload, which contains the bytes after the parts. Until S3 has stored this
// record, other sessions regard the upload as in use.
func (w *Writer) interrupt(cause error) phase {
	var e *journal.Entry
	if w.kind != oneRequest {
		e = w.upload.entry
		w.upload.drain(w.ctx)
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), interruptTimeout)
	defer done()
	offset, length := w.progress()
	switch before := w.resumed.inRecord(); {
	case w.kind == oneRequest && w.resumed.Upload != "": // this session failed before it took over the pending upload
		if errors.Is(cause, journal.ErrTakenOver) || w.active.Changed() {
			return ending
		}
		return interrupted
	case offset+length > before:
	case before > 0 && !w.active.Changed(): // the existing record already has all these bytes
		w.removeParts()
		return interrupted
	default:
		return w.discard()
	}
	record := w.u.Journal.NewRecord(w.owner, w.key, w.partSize, w.active.Began)
	record.KeyState = w.resumed.KeyState
	maxBytes := w.u.Quotas.Smallest(w.key) / pendingShare
	object, state, age, err := w.u.Bucket.State(ctx, w.key)
	switch {
	case err != nil:
		return w.abandon(e, err)
	case w.active.Changed() || record.EndedBy(&object, state, age) || maxBytes > 0 && offset+length > maxBytes:
		return w.discard()
	case w.kind == oneRequest:
		e = w.u.Journal.Take(ctx, record, nil, w.cancel)
	}
	if err := e.Interrupt(ctx, state, offset, io.NewSectionReader(w.part, 0, length), maxBytes); err != nil {
		return w.abandon(e, err)
	}
	p := &pending{Record: e.Record()}
	p.TailSize = length
	err = w.u.readParts(ctx, p)
	last := abandoned
	switch {
	case err == nil && p.size() == offset+length:
		last = interrupted
	case err == nil || s3error.IsNoSuchUpload(err):
		return w.removeParts()
	}
	e.Release()
	w.removeResumed() // its bytes are in the new record
	return last
}

// abandon gives up an upload whose record could not be written. If S3 has an older record, the owner can resume the
// upload once this session counts as dead.
func (w *Writer) abandon(e *journal.Entry, err error) phase {
	defer e.Release()
	if errors.Is(err, journal.ErrTakenOver) {
		return takenOver
	}
	w.u.Log.Warn(
		"interrupted upload could not be kept; the client must send the file again, or reconnect after two minutes",
		"bucket", w.u.Bucket.Name, "key", w.key, "err", err)
	if w.kind != oneRequest && !e.Recorded() {
		return w.removeParts() // the owner could not find the upload
	}
	return abandoned
}

// progress returns the offset up to which S3 has the parts of the upload, and the number of bytes in memory after it
// that can be kept: all but the last one, but at least the bytes that were already pending before this session.
func (w *Writer) progress() (offset, length int64) {
	offset = w.offset - w.part.Len()
	length = max(w.part.Len()-1, min(w.part.Len(), w.resumed.size()-offset), 0)
	if w.kind == oneRequest {
		return offset, length
	}
	stored := int64(0)
	for _, p := range w.upload.parts {
		if p.ETag == "" {
			break
		}
		stored += w.u.partSizeAt(w.partSize, stored)
	}
	if stored < offset { // a part is missing, so the bytes after it are of no use
		return stored, 0
	}
	return offset, length
}

// removeParts aborts the multipart upload, if there is one, and returns the new phase.
func (w *Writer) removeParts() phase {
	if w.kind == oneRequest {
		return ending
	}
	return w.upload.abort(w.phase)
}

// discard removes the parts and the record of the resumed upload, and returns the new phase.
func (w *Writer) discard() phase {
	defer w.removeResumed()
	return w.removeParts()
}

// removeResumed removes the record of the resumed upload if that upload has no parts. Otherwise the record belongs to
// w.upload.
func (w *Writer) removeResumed() {
	if w.resumed.inRecord() == 0 {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), abortTimeout)
	defer done()
	if err := w.u.Journal.Delete(ctx, &w.resumed.Record); err != nil && !errors.Is(err, journal.ErrTakenOver) {
		w.u.Log.Warn("interrupted upload could not be removed; a later sweep removes it",
			"bucket", w.u.Bucket.Name, "key", w.key, "err", err)
	}
}
