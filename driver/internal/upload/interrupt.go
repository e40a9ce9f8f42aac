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
	// interruptTimeout bounds how long a session takes to store the bytes in memory after its client has disconnected.
	interruptTimeout = 20 * time.Second

	// pendingShare divides the owner's smallest quota: the result is how many bytes the interrupted uploads may hold.
	pendingShare = 2
)

// canResumeAfter reports whether an owner may resume an upload that ended with this error: not if the bytes are wrong,
// or if S3 has refused a request for good, because it would refuse the resumed upload too.
func canResumeAfter(err error) bool {
	if s3error.IsNoSuchUpload(err) || s3error.Status(err) >= http.StatusBadRequest && !errors.Is(err, syscall.EAGAIN) {
		return false
	}
	return !slices.ContainsFunc(
		[]error{fs.ErrInvalid, fs.ErrExist, syscall.ESTALE, syscall.EFBIG, syscall.EDQUOT, syscall.EILSEQ},
		func(kind error) bool { return errors.Is(err, kind) })
}

// interrupt ends the upload, which cause has ended, so that its owner can resume it. It waits for the parts in flight.
// Then it writes the record that gives the upload up, with the bytes after the parts. The upload is interrupted only
// when S3 has that record and all these parts: until then other sessions take it for one on which a session works.
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
	case w.kind == oneRequest && w.resumed.Upload != "": // this session has not come to resume it
		if errors.Is(cause, journal.ErrTakenOver) || w.open.Changed() {
			return ending
		}
		return interrupted
	case offset+length > before:
	case before > 0 && !w.open.Changed(): // the record that is there has all bytes
		w.removeParts()
		return interrupted
	default:
		return w.discard()
	}
	record := w.u.Journal.NewRecord(w.owner, w.key, w.partSize, w.open.Began)
	record.KeyState = w.resumed.KeyState
	most := w.u.Quotas.Smallest(w.key) / pendingShare
	object, state, age, err := w.u.Bucket.State(ctx, w.key)
	switch {
	case err != nil:
		return w.abandon(e, err)
	case w.open.Changed() || record.EndedBy(&object, state, age) || most > 0 && offset+length > most:
		return w.discard()
	case w.kind == oneRequest:
		e = w.u.Journal.Take(ctx, record, nil, w.cancel)
	}
	if err := e.Interrupt(ctx, state, offset, io.NewSectionReader(w.part, 0, length), most); err != nil {
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

// abandon leaves an upload whose record S3 has not taken. If S3 has an older record, the owner can resume the upload
// when the session counts as dead.
func (w *Writer) abandon(e *journal.Entry, err error) phase {
	defer e.Release()
	if errors.Is(err, journal.ErrTakenOver) {
		return takenOver
	}
	w.u.Log.Warn(
		"interrupted upload could not be kept; its client has to send it again, or to come back after two minutes",
		"bucket", w.u.Bucket.Name, "key", w.key, "err", err)
	if w.kind != oneRequest && !e.Recorded() {
		return w.removeParts() // its owner would not find it
	}
	return abandoned
}

// progress returns up to where S3 has the parts of the upload, and how many bytes in memory follow and can be kept.
// These are all but the last one, or those that were pending before.
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
	if stored < offset { // a part is missing, so that what follows is worth nothing
		return stored, 0
	}
	return offset, length
}

// removeParts removes what S3 has of the parts, and returns the phase in which it leaves the upload.
func (w *Writer) removeParts() phase {
	if w.kind == oneRequest {
		return ending
	}
	return w.upload.abort(w.phase)
}

// discard removes the parts, and the bytes of the upload that this one resumes.
func (w *Writer) discard() phase {
	defer w.removeResumed()
	return w.removeParts()
}

// removeResumed removes the record of the upload that this one resumes, if that has no parts.
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
