package view

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/synctest"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// endingStore has one upload, whose Close blocks.
type endingStore struct {
	Store
	closing chan struct{}
}

func (s *endingStore) URI(name string) string { return "s3://bucket" + name }

func (s *endingStore) Stat(context.Context, string) (fs.FileInfo, error) { return nil, fs.ErrNotExist }
func (s *endingStore) StatFile(context.Context, string) (fs.FileInfo, error) {
	return nil, fs.ErrNotExist
}
func (s *endingStore) PendingUpload(context.Context, string) (fs.FileInfo, error) {
	return nil, fs.ErrNotExist
}

func (s *endingStore) OpenReader(context.Context, string, int64) (Reader, error) {
	return nil, fs.ErrNotExist
}

func (s *endingStore) OpenWriter(context.Context, string, int, int64, *[sha256.Size]byte) (Writer, error) {
	return slowUpload{closing: s.closing}, nil
}

type slowUpload struct {
	Writer
	closing chan struct{}
}

func (u slowUpload) Abort(error) {}

func (u slowUpload) Close() error {
	<-u.closing
	return nil
}

// Only commands that need the size of a file, or resume it, wait for an upload of the same user to the same name, from
// the time it is aborted until it is closed.
func TestEndings(t *testing.T) {
	const write = os.O_CREATE
	open := func(flag int, offset int64) func(f *Files) {
		return func(f *Files) { _, _ = f.OpenWriter("/file", flag, offset) }
	}
	for _, tt := range []struct {
		name, owner string
		ask         func(f *Files)
		waits       bool
	}{
		{"SIZE", "alice", func(f *Files) { _, _ = f.StatFile("/file") }, true},
		{"MLST", "alice", func(f *Files) { _, _ = f.Stat("/file") }, true},
		{"pending", "alice", func(f *Files) { _, _ = f.PendingUpload("/file") }, true},
		{"REST-and-STOR", "alice", open(write, 5), true},
		{"APPE", "alice", open(write|os.O_APPEND, 0), true},
		{"STOR", "alice", open(write|os.O_TRUNC, 0), false},
		{"RETR", "alice", func(f *Files) { _, _ = f.OpenReader("/file", 5) }, false},
		{"other-name", "alice", func(f *Files) { _, _ = f.StatFile("/other") }, false},
		{"other-user", "bob", func(f *Files) { _, _ = f.StatFile("/file") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				storage, endings := &endingStore{closing: make(chan struct{})}, &EndingUploads{}
				view := func(owner string) *View {
					return &View{
						Mounts: NewMounts(Mount{Dir: "/", Store: storage}), Directories: NewDirectories("/"),
						Owner: owner, EndingUploads: endings,
					}
				}
				file, err := view("alice").For(t.Context(), nil).OpenWriter("/file", write|os.O_TRUNC, 0)
				must.OK(t, err)
				ask := func(ctx context.Context) (done chan struct{}) {
					done = make(chan struct{})
					go func() {
						tt.ask(view(tt.owner).For(ctx, nil))
						close(done)
					}()
					synctest.Wait()
					return done
				}
				if !isClosed(ask(t.Context())) {
					t.Error("waited for an upload in progress")
				}
				file.Abort(errors.New("the client is gone"))
				go func() { _ = file.Close() }()
				asked := ask(t.Context())
				if isClosed(asked) == tt.waits {
					t.Errorf("waited = %t, want %t", !tt.waits, tt.waits)
				}
				ctx, cancel := context.WithCancel(t.Context())
				impatient := ask(ctx)
				cancel()
				<-impatient
				close(storage.closing)
				synctest.Wait()
				if !isClosed(asked) {
					t.Error("waited for an upload that has ended")
				}
				file.Abort(errors.New("too late"))
				if len(endings.uploads) > 0 {
					t.Errorf("%d uploads are still ending", len(endings.uploads))
				}
			})
		})
	}
}

// A command waits for a limited time.
func TestEndingThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endings := &EndingUploads{}
		defer endings.begin("key")()
		endings.await(t.Context(), "key") // the test would fail as a deadlock
	})
}

func isClosed(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
