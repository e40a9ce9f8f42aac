package events

import (
	"context"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/internal/storage/view"
)

// An eventFS tells a queue what a user changes in a storage. The event is in the bucket before the change.
type eventFS struct {
	view.ObjectStorage
	ctx   context.Context // of the command
	queue *Queue
	user  string
}

// Watch wraps the storage of a user for one command, whose context is ctx.
func (q *Queue) Watch(ctx context.Context, storage view.ObjectStorage, user string) view.ObjectStorage {
	return &eventFS{ObjectStorage: storage, ctx: ctx, queue: q, user: user}
}

func (f *eventFS) event(t Type, name, to string) Event {
	e := Event{Type: t, User: f.user, Path: name, URI: f.URI(name)}
	if to != "" {
		e.ToPath, e.ToURI = to, f.URI(to)
	}
	return e
}

// change makes an event durable, makes the change, and ends the event.
func (f *eventFS) change(e Event, do func() error) error {
	e, err := f.queue.begin(f.ctx, e)
	if err != nil {
		return err
	}
	return f.queue.end(f.ctx, e, do())
}

// changeInSteps is change for one of several requests.
func (f *eventFS) changeInSteps(e Event, do func() error) error {
	e.steps = true
	return f.change(e, do)
}

func (f *eventFS) RemoveFile(name string) error {
	return f.change(f.event(Delete, name, ""), func() error { return f.ObjectStorage.RemoveFile(name) })
}

func (f *eventFS) RemoveAll(name string) error {
	return f.changeInSteps(f.event(Delete, name, ""), func() error { return f.ObjectStorage.RemoveAll(name) })
}

func (f *eventFS) Rename(oldname, newname string) error {
	return f.changeInSteps(f.event(Rename, oldname, newname), func() error {
		return f.ObjectStorage.Rename(oldname, newname)
	})
}

func (f *eventFS) Copy(ctx context.Context, oldname, newname string) error {
	return f.changeInSteps(f.event(Copy, oldname, newname), func() error {
		return f.ObjectStorage.Copy(ctx, oldname, newname)
	})
}

func (f *eventFS) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	file, err := f.ObjectStorage.OpenAt(name, flag, offset)
	if err != nil || flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return file, err
	}
	return &upload{Upload: file.(view.Upload), fs: f, name: name}, nil
}

// An upload is a file whose Close is the change.
type upload struct {
	view.Upload
	fs      *eventFS
	name    string
	aborted atomic.Bool
}

// Abort ends the upload without a change.
func (u *upload) Abort(cause error) {
	u.aborted.Store(true)
	u.Upload.Abort(cause)
}

// Close makes the file visible, after its event.
func (u *upload) Close() error {
	if u.aborted.Load() {
		return u.Upload.Close()
	}
	e := u.fs.event(Upload, u.name, "")
	if info, err := u.Stat(); err == nil {
		size := info.Size()
		e.Size = &size
	}
	e, err := u.fs.queue.begin(u.fs.ctx, e)
	if err != nil {
		u.Abort(err)
		_ = u.Upload.Close() // returns the cause, or that of an abort before
		return err
	}
	err = u.Upload.Close()
	if info, statErr := u.Stat(); statErr == nil && err == nil {
		if stored, ok := info.(interface{ ETag() string }); ok {
			e.ETag = strings.Trim(stored.ETag(), `"`)
		}
	}
	return u.fs.queue.end(u.fs.ctx, e, err)
}
