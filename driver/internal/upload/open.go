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
	var (
		create    = flag&os.O_CREATE != 0
		exclusive = create && flag&os.O_EXCL != 0 || u.NoOverwrite
		whole     = flag&os.O_APPEND != 0
		keeps     = flag&os.O_TRUNC == 0 && (whole || offset > 0)
	)
	w := &Writer{
		name: name, u: u, key: key,
		attributes: u.Objects.OfFile(name),
		condition:  s3api.Condition{Absent: exclusive},
		exclusive:  exclusive,
		partSize:   u.PartSize,
		change:     u.Quotas.Change(key),
	}
	resumable := u.Owner != ""
	defer func() {
		if err != nil {
			w.change.End(nil)
			if w.open != nil {
				w.open.End()
			}
			if w.endCopy != nil {
				w.endCopy()
			}
		}
	}()
	seen := u.reported.take(key)
	if keeps && !whole {
		var err error
		if w.resumed, err = u.resumeAt(ctx, key, offset); err != nil {
			return nil, err
		}
	}
	if w.resumed != nil {
		keeps, create = false, true // the first bytes come from the upload
		w.partSize, w.offset = w.resumed.PartSize, offset
		if !exclusive {
			w.condition = w.resumed.condition
		}
	}
	if keeps || exclusive || !create {
		v, a, _, err := u.Bucket.HeadExact(ctx, s3api.Version{Key: key})
		switch {
		case errors.Is(err, fs.ErrNotExist) && create && whole:
			if err := w.appendToNothing(ctx, seen); err != nil {
				return nil, err
			}
			resumable = w.resumed != nil
		case errors.Is(err, fs.ErrNotExist) && create && !keeps: // the file begins empty
		case err != nil:
			return nil, err
		case exclusive:
			return nil, fs.ErrExist
		case keeps && seen >= 0 && (whole || offset == seen):
			// another session has stored it, and the client sends only the rest of its own
			return nil, &ResumeError{Size: v.Size, Changed: true}
		case keeps:
			resumable = false
			if whole {
				offset = v.Size
			}
			if err := w.keep(ctx, v, a, offset); err != nil {
				return nil, err
			}
		}
	}
	if resumable {
		if err := w.beginResumable(); err != nil {
			return nil, err
		}
	}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	if w.head.Key != "" || w.condition.Absent {
		w.change.Saw(w.head)
	} else {
		w.change.Look(w.ctx, u.Bucket, key)
	}
	if err := w.change.Open(w.ctx); err != nil {
		w.cancel(err)
		return nil, err
	}
	return w, nil
}

// beginResumable tells the journal of an upload that its owner can resume. An upload that is resumed began when it was
// begun for the first time.
func (w *Writer) beginResumable() error {
	began := time.Now()
	if w.resumed != nil {
		began = w.resumed.Began
	}
	w.open = w.u.Journal.Begin(w.key, began)
	if w.resumed != nil && w.open.Changed() {
		return journal.ErrTakenOver
	}
	return nil
}

// keep lets the bytes of a version up to an offset stay, and those after what will be written, unless the upload is to
// end the file. The new object has the attributes of the version, but for its set time.
func (w *Writer) keep(ctx context.Context, v s3api.Version, a s3object.Attributes, offset int64) error {
	if offset > v.Size {
		return s3error.ErrInvalid
	}
	w.head, w.headSize, w.offset, w.keptEnd = v, offset, offset, offset
	if !w.u.Truncate {
		w.keptEnd = v.Size
	}
	end, err := w.u.BeginCopy(w.keptEnd)
	if err != nil {
		return err
	}
	w.endCopy = end
	w.partSize = w.u.partSizeFor(w.keptEnd)
	w.attributes, w.condition = a, v.Unchanged()
	w.attributes.RemoveMTime()
	w.u.Objects.Inherit(&w.attributes)
	return w.u.Bucket.ReadTags(ctx, w.key, &w.attributes)
}

// appendToNothing appends to a missing file: it resumes the upload that the driver has reported with seen bytes, or
// begins the file. A client that begins a file so does not expect to resume it, so the driver keeps nothing of an
// interrupted one. In both cases no other session may store the file meanwhile.
func (w *Writer) appendToNothing(ctx context.Context, seen int64) (err error) {
	w.resumed, err = w.u.resumeAt(ctx, w.key, seen)
	switch {
	case err != nil:
		return err
	case w.resumed != nil:
		w.partSize, w.offset = w.resumed.PartSize, w.resumed.size()
	case seen > 0: // another session has removed it, and the client sends only the rest of the file
		return &ResumeError{Size: 0}
	}
	w.condition.Absent = true
	return nil
}
