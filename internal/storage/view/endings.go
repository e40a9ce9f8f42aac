package view

import (
	"context"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/spf13/afero"
)

// Endings are the uploads of a process that are ending: their client is gone or has sent everything, and the server
// stores the rest. Until that is done no session can resume such an upload, and no size of it is known. A client
// whose connection was lost comes back within milliseconds, and believes the reply that it gets then.
//
// Sessions of one process share Endings. The zero value is ready.
type Endings struct {
	mu      sync.Mutex
	uploads map[string]*ending // by owner and object
}

// An ending is what waits for the uploads of one owner to one object.
type ending struct {
	uploads int
	done    chan struct{} // closed when there is none left
}

// maxEnding is how long a command waits for an upload to end. Within that time the driver stores the rest of an
// upload that has lost its client, or gives up. S3 may take longer to put together many parts. Then the command gets
// what there is.
const maxEnding = 20 * time.Second

// begin notes that an upload ends. The caller calls done once, when it has ended.
func (e *Endings) begin(key string) (done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.uploads == nil {
		e.uploads = make(map[string]*ending)
	}
	of := e.uploads[key]
	if of == nil {
		of = &ending{done: make(chan struct{})}
		e.uploads[key] = of
	}
	of.uploads++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if of.uploads--; of.uploads == 0 {
			delete(e.uploads, key)
			close(of.done)
		}
	}
}

// await waits until no upload is ending.
func (e *Endings) await(ctx context.Context, key string) {
	e.mu.Lock()
	of := e.uploads[key]
	e.mu.Unlock()
	if of == nil {
		return
	}
	timer := time.NewTimer(maxEnding)
	defer timer.Stop()
	select {
	case <-of.done:
	case <-ctx.Done():
	case <-timer.C:
	}
}

// endingFS lets the commands by which a client resumes an upload wait for one that is ending.
type endingFS struct {
	ObjectStorage
	ctx     context.Context // of the command
	owner   string
	endings *Endings
}

// NewEndingFS lets a command whose context is ctx wait for what other sessions of the owner are about to store under
// the same name. Then it asks the storage for the size of the file, or resumes it.
func NewEndingFS(ctx context.Context, storage ObjectStorage, owner string, endings *Endings) ObjectStorage {
	return &endingFS{ObjectStorage: storage, ctx: ctx, owner: owner, endings: endings}
}

// key is the name of a file for all sessions of the owner.
func (f *endingFS) key(name string) string { return f.owner + "\x00" + f.URI(name) }

func (f *endingFS) await(name string) { f.endings.await(f.ctx, f.key(name)) }

func (f *endingFS) Stat(name string) (fs.FileInfo, error) {
	f.await(name)
	return f.ObjectStorage.Stat(name)
}

func (f *endingFS) StatFile(name string) (fs.FileInfo, error) {
	f.await(name)
	return f.ObjectStorage.StatFile(name)
}

func (f *endingFS) PendingUpload(name string) (fs.FileInfo, error) {
	f.await(name)
	return f.ObjectStorage.PendingUpload(name)
}

// OpenAt waits where bytes of the file are to stay. An upload from the first byte on needs to know of no other.
func (f *endingFS) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	if writes(flag) && (offset > 0 || flag&os.O_APPEND != 0) {
		f.await(name)
	}
	file, err := f.ObjectStorage.OpenAt(name, flag, offset)
	if upload, ok := file.(Upload); ok && err == nil {
		return &endingUpload{Upload: upload, begin: func() func() { return f.endings.begin(f.key(name)) }}, nil
	}
	return file, err
}

// An endingUpload begins to end when it is aborted or closed, and has ended when Close returns.
type endingUpload struct {
	Upload
	begin func() (done func())

	mu   sync.Mutex
	done func() // nil before
}

func (u *endingUpload) ending() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done == nil {
		u.done = sync.OnceFunc(u.begin())
	}
}

// Abort lets the upload end, unless it has.
func (u *endingUpload) Abort(cause error) {
	u.ending()
	u.Upload.Abort(cause)
}

func (u *endingUpload) Close() error {
	u.ending()
	defer u.done()
	return u.Upload.Close()
}
