package upload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/s3object"
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

// interrupt ends the upload, which cause has ended, so that its owner can resume it. It waits for the parts under
// way. Then it writes the record that gives the upload up, with the bytes after the parts. The upload counts as kept
// only when S3 has that record and all these parts: until then other sessions take it for one on which a session works.
func (w *Writer) interrupt(cause error) {
	var e *journal.Entry
	if w.upload != nil {
		e = w.upload.entry
		w.upload.drain(w.ctx)
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), interruptTimeout)
	defer done()
	before := int64(0) // bytes in a record that stays as it is
	if w.resumed != nil {
		if w.upload == nil && w.resumed.Upload != "" { // this session has not come to resume it
			w.keepIf(!errors.Is(cause, journal.ErrTakenOver) && !w.open.Changed())
			return
		}
		if w.resumed.Upload == "" {
			before = w.resumed.size()
		}
	}
	offset, length := w.progress()
	if offset+length <= before && !w.open.Changed() {
		w.keepIf(before > 0)
		if w.upload != nil {
			w.upload.abort()
		}
		return
	}
	most := w.u.Quotas.Smallest(w.key) / pendingShare
	record := w.u.Journal.NewRecord(w.u.Owner, w.key, w.partSize, w.open.Began)
	if w.resumed != nil {
		record.State, record.HasState = w.resumed.State, w.resumed.HasState
	}
	object, state, age, err := w.u.Bucket.State(ctx, w.key)
	switch {
	case err == nil && (w.open.Changed() || record.EndedBy(&object, state, age) || most > 0 && offset+length > most):
		w.discard()
		return
	case err == nil && e == nil:
		e = w.u.Journal.Take(ctx, record, nil, w.cancel)
		fallthrough
	case err == nil:
		err = e.Interrupt(ctx, state, offset, w.tail(length), most)
	}
	if err != nil {
		w.notKept(e, err)
		return
	}
	p := &pending{Record: e.Record()}
	p.TailSize = length
	err = w.u.readParts(ctx, p)
	kept := err == nil && p.size() == offset+length
	w.keepIf(kept)
	if w.upload != nil && (err == nil && !kept || s3error.IsNoSuchUpload(err)) {
		w.upload.abort()
		return
	}
	e.Release()
	if before > 0 { // its bytes are in the new record
		w.removeResumed(ctx)
	}
}

// keepIf ends the upload as interrupted if its owner can resume it, else as one that failed.
func (w *Writer) keepIf(kept bool) {
	w.phase = ending
	if kept {
		w.phase = interrupted
	}
}

// notKept ends an upload whose record could not be given up. If S3 has a record all the same, its owner can resume it
// when the session counts as dead.
func (w *Writer) notKept(e *journal.Entry, err error) {
	if errors.Is(err, journal.ErrTakenOver) {
		e.Release()
		return
	}
	w.u.Log.Warn(
		"interrupted upload could not be kept; its client has to send it again, or to come back after two minutes",
		"bucket", w.u.Bucket.Name, "key", w.key, "err", err)
	if w.upload != nil && !e.Recorded() {
		w.upload.abort() // its owner would not find it
		return
	}
	e.Release()
}

// progress returns up to where S3 has the parts of the upload, and how many bytes in memory follow and can be kept.
// These are all but the last one, or those that were pending before.
func (w *Writer) progress() (offset, length int64) {
	offset = w.offset
	if w.part != nil {
		offset -= w.part.Len()
		length = max(w.part.Len()-1, 0)
		if w.resumed != nil {
			length = max(length, min(w.part.Len(), w.resumed.size()-offset))
		}
	}
	if w.upload == nil {
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

// tail returns the first length bytes of the buffer.
func (w *Writer) tail(length int64) s3object.Content {
	if w.part == nil {
		return bytes.NewReader(nil)
	}
	return io.NewSectionReader(w.part, 0, length)
}

// discard removes the upload and its record.
func (w *Writer) discard() {
	w.phase = ending
	if w.upload != nil {
		w.upload.abort()
	}
	if w.resumed == nil || w.resumed.Upload != "" {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), abortTimeout)
	defer done()
	w.removeResumed(ctx)
}

// removeResumed removes the record of the resumed upload, where that had no parts.
func (w *Writer) removeResumed(ctx context.Context) {
	if err := w.u.Journal.Delete(ctx, &w.resumed.Record); err != nil && !errors.Is(err, journal.ErrTakenOver) {
		w.u.Log.Warn("interrupted upload could not be removed; a later sweep removes it",
			"bucket", w.u.Bucket.Name, "key", w.key, "err", err)
	}
}
