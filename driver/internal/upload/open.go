package upload

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Open opens a file for writing, with the flags of os.OpenFile. Bytes are written from offset on. The new object keeps
// the bytes of the current one before offset and, unless Options.Truncate is set, the bytes after the last written one.
// If an interrupted upload with offset bytes is pending, Open resumes it. When ctx ends, the upload fails.
//
// If sum is not nil, Close publishes the file only if this is its SHA-256. Such an upload begins at offset 0 and cannot
// be resumed, because a session that resumes an upload does not have the bytes before the offset.
func (u *Uploader) Open(
	ctx context.Context, name, key string, flag int, offset int64, sum *[sha256.Size]byte,
) (_ *Writer, err error) {
	if sum != nil && (offset > 0 || flag&os.O_APPEND != 0) {
		return nil, errors.ErrUnsupported
	}
	rule := u.Rule(ctx, name)
	w := &Writer{
		name: name, key: key, u: u, owner: u.Owner,
		attributes: u.Objects.ForFile(name), rule: &rule,
		condition:  s3api.Condition{Absent: u.NoOverwrite || flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0},
		partSize:   u.PartSize,
		change:     u.Quotas.Begin(key),
		endCopy:    func() {},
		inspection: noInspection{},
		promise:    newPromise(sum),
	}
	if sum != nil {
		w.owner = ""
	}
	rule.Apply(&w.attributes)
	defer func() {
		if err != nil {
			w.change.End(nil)
			w.active.End()
			w.endCopy()
		}
	}()
	if err := w.findBeginning(ctx, flag, offset); err != nil {
		return nil, err
	}
	if w.owner != "" {
		if err := w.beginResumable(); err != nil {
			return nil, err
		}
	}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	if w.kept.Key != "" || w.condition.Absent {
		w.change.SetCurrent(w.kept.Version)
	} else {
		w.change.StartHead(w.ctx, u.Bucket, key)
	}
	if err := w.change.Open(w.ctx); err != nil {
		w.cancel(err)
		return nil, err
	}
	return w, nil
}

// Create opens a new file that cannot be resumed. name determines its attributes and its inspection.
// sum is as in Open.
func (u *Uploader) Create(ctx context.Context, name, key string, sum *[sha256.Size]byte) (*Writer, error) {
	unowned := *u
	unowned.Owner = ""
	return unowned.Open(ctx, name, key, os.O_CREATE|os.O_TRUNC, 0, sum)
}

// findBeginning chooses the bytes that precede the written ones: the bytes of an interrupted upload, the bytes of the
// current object, or nothing. It also sets the condition on the object that the new one may replace.
func (w *Writer) findBeginning(ctx context.Context, flag int, offset int64) error {
	var (
		create    = flag&os.O_CREATE != 0
		exclusive = w.condition.Absent
		appends   = flag&os.O_APPEND != 0
		keeps     = flag&os.O_TRUNC == 0 && (appends || offset > 0)
	)
	seen := w.u.reported.take(w.key)
	if keeps && !appends {
		p, err := w.u.resumeAt(ctx, w.key, offset)
		if err != nil {
			return err
		}
		if p.size() > 0 {
			w.continueWith(p)
			keeps, create = false, true // the first bytes come from the pending upload
			if !exclusive {
				w.condition = p.condition
			}
		}
	}
	if create && !keeps && !exclusive {
		return nil
	}
	v, a, _, err := w.u.Bucket.HeadExact(ctx, s3api.Version{Key: w.key})
	switch {
	case errors.Is(err, fs.ErrNotExist) && create && appends:
		return w.appendToNothing(ctx, seen)
	case errors.Is(err, fs.ErrNotExist) && create && !keeps: // a new file
		return nil
	case err != nil:
		return err
	case exclusive:
		return fs.ErrExist
	case keeps && seen >= 0 && (appends || offset == seen):
		// another session has stored the file, and the client is about to send only the rest of its own version
		return &ResumeError{Size: v.Size, Changed: true}
	case keeps && appends:
		return w.keep(ctx, v, a, v.Size)
	case keeps:
		return w.keep(ctx, v, a, offset)
	}
	return nil
}

// continueWith makes the upload continue p.
func (w *Writer) continueWith(p pending) {
	w.resumed, w.partSize, w.offset = p, p.PartSize, p.size()
}

// beginResumable registers the upload with the journal, so that it notices changes of the file by other sessions of
// this process. A resumed upload keeps the time at which its first session began.
func (w *Writer) beginResumable() error {
	resumes, began := w.resumed.size() > 0, time.Now()
	if resumes {
		began = w.resumed.Began
	}
	w.active = w.u.Journal.Begin(w.key, began)
	if resumes && w.active.Changed() {
		return journal.ErrTakenOver
	}
	return nil
}

// keptBytes describes the bytes of the current object that become part of the new one.
type keptBytes struct {
	s3api.Version       // the current object; its key is empty if nothing is kept
	head          int64 // the bytes [0, head) precede the written bytes
	end           int64 // if more than the written bytes, the bytes up to end follow them
}

// keep makes the new object keep the bytes of v before offset and, unless Options.Truncate is set, those that follow
// the written bytes. The new object has the attributes of v, except a modification time that a client has set. Such an
// upload cannot be resumed.
func (w *Writer) keep(ctx context.Context, v s3api.Version, a s3object.Attributes, offset int64) error {
	if offset > v.Size {
		return s3error.ErrInvalid
	}
	w.owner = ""
	w.kept, w.offset = keptBytes{Version: v, head: offset, end: offset}, offset
	if !w.u.Truncate {
		w.kept.end = v.Size
	}
	end, err := w.u.BeginCopy(w.kept.end)
	if err != nil {
		return err
	}
	w.endCopy = end
	w.partSize = w.u.partSizeFor(w.kept.end)
	w.attributes, w.condition = a, v.Unchanged()
	w.attributes.RemoveMTime()
	w.u.Objects.Inherit(&w.attributes)
	if err := w.u.Bucket.ReadTags(ctx, w.key, &w.attributes); err != nil {
		return err
	}
	w.rule.Apply(&w.attributes)
	return nil
}

// appendToNothing handles an append to a missing file. If the session was shown a pending upload of seen bytes,
// appendToNothing resumes it. Otherwise it begins a new file. A client that begins a file with an append does not
// expect to resume it, so such an upload is not kept if it is interrupted. In both cases the upload fails if another
// session stores the file before it ends.
func (w *Writer) appendToNothing(ctx context.Context, seen int64) error {
	p, err := w.u.resumeAt(ctx, w.key, seen)
	switch {
	case err != nil:
		return err
	case p.size() > 0:
		w.continueWith(p)
	case seen > 0: // the upload is gone, and the client is about to send only the rest of the file
		return &ResumeError{Size: 0}
	default:
		w.owner = ""
	}
	if !w.condition.Absent {
		w.condition = (&s3api.Version{}).Unchanged()
	}
	return nil
}
