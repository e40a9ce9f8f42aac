package upload

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

const (
	// interruptTimeout bounds how long a session takes to store the bytes in memory after its client has disconnected.
	interruptTimeout = 20 * time.Second

	// pendingShare divides the owner's smallest quota: the result is how many bytes the interrupted uploads may hold.
	pendingShare = 2
)

// canResumeAfter tells whether an owner may resume an upload that ended with this error. It may not where the bytes
// are wrong, or where the object may not be made at all.
func canResumeAfter(err error) bool {
	return !slices.ContainsFunc(
		[]error{fs.ErrInvalid, fs.ErrExist, syscall.ESTALE, syscall.EFBIG, syscall.EDQUOT, syscall.EILSEQ},
		func(kind error) bool { return errors.Is(err, kind) })
}

// interrupt ends the upload, which cause has ended, so that its owner can resume it. It waits for the parts under
// way. Then it writes the record that gives the upload up, with the bytes after the parts. The upload counts as kept
// only when S3 has that record: until then other sessions take it for one on which a session works.
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
			w.kept = !errors.Is(cause, journal.ErrTakenOver)
			return
		}
		if w.resumed.Upload == "" {
			before = w.resumed.size()
		}
	}
	w.kept = before > 0
	offset, length := w.progress()
	if offset+length <= before {
		if w.upload != nil {
			w.upload.abort()
		}
		return
	}
	most, unsettled := w.u.Quotas.Smallest(w.key)/pendingShare, w.upload.unsettled()
	base, stored, err := w.storedSince(ctx)
	switch {
	case err == nil && (stored || most > 0 && offset+length > most):
		// its client has stored the file since, or it is too large to stay
		w.kept = false
		w.discard()
		return
	case err == nil && e == nil:
		e = w.u.Journal.Take(ctx, w.u.Journal.NewRecord(w.u.Owner, w.key, w.partSize), nil, w.cancel)
		fallthrough
	case err == nil:
		err = e.Interrupt(ctx, base, offset, w.tail(length), unsettled)
	}
	if err != nil {
		w.notKept(e, err)
		return
	}
	// Elsewhere the owner has to wait, see [journal.Record.CanResume].
	w.kept = !unsettled || !w.u.Bucket.Profile.UnendedUploads
	e.Release()
	if before > 0 { // its bytes are in the new record
		w.removeResumed(ctx)
	}
	if err := w.u.Journal.RemoveOlder(ctx, w.u.Owner, w.key, e.Name()); err != nil {
		w.u.Log.Warn("interrupted upload could not be removed; a later sweep removes it",
			"bucket", w.u.Bucket.Name, "key", w.key, "err", err)
	}
	w.u.Journal.Trim(ctx, w.u.Log, w.u.Owner, most)
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

// storedSince returns the identity of the object, and whether a session has stored it since this upload began. Then the
// client has reconnected and sent the file again before the server noticed that the first connection was dead. Both
// times are by the clock of S3, which tells an object that was stored within the first two seconds from one before only
// if the upload has looked at the object.
func (w *Writer) storedSince(ctx context.Context) (base string, stored bool, err error) {
	v, _, age, err := w.u.Bucket.HeadWithAge(ctx, w.key)
	took := time.Since(w.opened) // until the answer, as the age: S3 may take long
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	base = v.Identity()
	return base, age < took-journal.ClockSlack || w.looked && base != w.base, nil
}

// discard removes the upload and its record.
func (w *Writer) discard() {
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
