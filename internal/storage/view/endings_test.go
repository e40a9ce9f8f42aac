package view

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/synctest"

	"github.com/spf13/afero"
)

// endingStorage has one upload, whose Close waits.
type endingStorage struct {
	ObjectStorage
	closing chan struct{}
}

func (s *endingStorage) URI(name string) string { return "s3://bucket" + name }

func (s *endingStorage) Stat(string) (fs.FileInfo, error)          { return nil, fs.ErrNotExist }
func (s *endingStorage) StatFile(string) (fs.FileInfo, error)      { return nil, fs.ErrNotExist }
func (s *endingStorage) PendingUpload(string) (fs.FileInfo, error) { return nil, fs.ErrNotExist }
func (s *endingStorage) OpenAt(string, int, int64) (afero.File, error) {
	return slowUpload{closing: s.closing}, nil
}

type slowUpload struct {
	Upload
	closing chan struct{}
}

func (u slowUpload) Abort(error) {}

func (u slowUpload) Close() error {
	<-u.closing
	return nil
}

// Only what asks for the size of a file, or resumes it, waits for an upload of the same user to the same name, from
// its abort on until it is closed.
func TestEndings(t *testing.T) {
	const write = os.O_WRONLY | os.O_CREATE
	open := func(flag int, offset int64) func(f ObjectStorage) {
		return func(f ObjectStorage) { _, _ = f.OpenAt("/file", flag, offset) }
	}
	for _, tt := range []struct {
		name, owner string
		ask         func(f ObjectStorage)
		waits       bool
	}{
		{"SIZE", "alice", func(f ObjectStorage) { _, _ = f.StatFile("/file") }, true},
		{"MLST", "alice", func(f ObjectStorage) { _, _ = f.Stat("/file") }, true},
		{"pending", "alice", func(f ObjectStorage) { _, _ = f.PendingUpload("/file") }, true},
		{"REST-and-STOR", "alice", open(write, 5), true},
		{"APPE", "alice", open(write|os.O_APPEND, 0), true},
		{"STOR", "alice", open(write|os.O_TRUNC, 0), false},
		{"RETR", "alice", open(os.O_RDONLY, 5), false},
		{"other-name", "alice", func(f ObjectStorage) { _, _ = f.StatFile("/other") }, false},
		{"other-user", "bob", func(f ObjectStorage) { _, _ = f.StatFile("/file") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				storage, endings := &endingStorage{closing: make(chan struct{})}, &Endings{}
				file, err := NewEndingFS(t.Context(), storage, "alice", endings).OpenAt("/file", write|os.O_TRUNC, 0)
				if err != nil {
					t.Fatal(err)
				}
				ask := func(ctx context.Context) (done chan struct{}) {
					done = make(chan struct{})
					go func() {
						tt.ask(NewEndingFS(ctx, storage, tt.owner, endings))
						close(done)
					}()
					synctest.Wait()
					return done
				}
				if !isClosed(ask(t.Context())) {
					t.Error("it waits for an upload that goes on")
				}
				file.(Upload).Abort(errors.New("the client is gone"))
				go func() { _ = file.Close() }()
				asked := ask(t.Context())
				if isClosed(asked) == tt.waits {
					t.Errorf("it waits: %t, want %t", !tt.waits, tt.waits)
				}
				ctx, cancel := context.WithCancel(t.Context())
				impatient := ask(ctx)
				cancel()
				<-impatient
				close(storage.closing)
				synctest.Wait()
				if !isClosed(asked) {
					t.Error("it waits for an upload that has ended")
				}
				file.(Upload).Abort(errors.New("too late"))
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
		endings := &Endings{}
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
