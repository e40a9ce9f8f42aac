package upload

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Open opens a file for writing, with the flags of os.OpenFile. The new object will begin with the first offset bytes
// of the present one. It ends with those that follow as many as are written, unless Options.Truncate is set. The end
// of ctx ends the upload.
func (u *Uploader) Open(ctx context.Context, name, key string, flag int, offset int64) (_ *Writer, err error) {
	w := &Writer{
		name: name, key: key, u: u, owner: u.Owner,
		attributes: u.Objects.ForFile(name),
		condition:  s3api.Condition{Absent: u.NoOverwrite || flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0},
		partSize:   u.PartSize,
		change:     u.Quotas.Begin(key),
		endCopy:    func() {},
		inspection: unjudged{},
	}
	defer func() {
		if err != nil {
			w.change.End(nil)
			w.open.End()
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

// findBeginning decides which bytes come before the written ones: those of an interrupted upload, those of the present
// object, or none. It also decides which object the new one may replace.
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
			keeps, create = false, true // the first bytes come from the upload
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
	case errors.Is(err, fs.ErrNotExist) && create && !keeps: // the file begins empty
		return nil
	case err != nil:
		return err
	case exclusive:
		return fs.ErrExist
	case keeps && seen >= 0 && (appends || offset == seen):
		// another session has stored it, and the client sends only the rest of its own
		return &ResumeError{Size: v.Size, Changed: true}
	case keeps && appends:
		return w.keep(ctx, v, a, v.Size)
	case keeps:
		return w.keep(ctx, v, a, offset)
	}
	return nil
}

// continueWith lets the upload continue an interrupted one.
func (w *Writer) continueWith(p pending) {
	w.resumed, w.partSize, w.offset = p, p.PartSize, p.size()
}

// beginResumable tells the journal of an upload that its owner can resume. An upload that is resumed began when it was
// begun for the first time.
func (w *Writer) beginResumable() error {
	resumes, began := w.resumed.size() > 0, time.Now()
	if resumes {
		began = w.resumed.Began
	}
	w.open = w.u.Journal.Begin(w.key, began)
	if resumes && w.open.Changed() {
		return journal.ErrTakenOver
	}
	return nil
}

// A kept describes the object of which bytes stay in the new one.
type kept struct {
	s3api.Version       // its key is empty if no bytes stay
	head          int64 // bytes before the written ones
	end           int64 // where the bytes end that stay
}

// keep lets the bytes of a version up to an offset stay, and those after what will be written, unless the upload is to
// end the file. The new object has the attributes of the version, except its set time. No session can resume such an
// upload.
func (w *Writer) keep(ctx context.Context, v s3api.Version, a s3object.Attributes, offset int64) error {
	if offset > v.Size {
		return s3error.ErrInvalid
	}
	w.owner = ""
	w.kept, w.offset = kept{Version: v, head: offset, end: offset}, offset
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
	return w.u.Bucket.ReadTags(ctx, w.key, &w.attributes)
}

// appendToNothing appends to a missing file: it resumes the upload that the driver has reported with seen bytes, or
// begins the file. A client that begins a file so does not expect to resume it, so the driver keeps nothing of an
// interrupted one. In both cases no other session may store the file meanwhile.
func (w *Writer) appendToNothing(ctx context.Context, seen int64) error {
	p, err := w.u.resumeAt(ctx, w.key, seen)
	switch {
	case err != nil:
		return err
	case p.size() > 0:
		w.continueWith(p)
	case seen > 0: // another session has removed it, and the client sends only the rest of the file
		return &ResumeError{Size: 0}
	default:
		w.owner = ""
	}
	if !w.condition.Absent {
		w.condition = (&s3api.Version{}).Unchanged()
	}
	return nil
}
