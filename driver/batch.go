package driver

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// maxBatch is the maximum number of objects that S3 deletes with one request.
const maxBatch = 1000

// A batch collects the objects of a directory during a walk, and deletes as many as possible with each request.
type batch struct {
	fs      *Fs
	prefix  string             // prefix of all keys
	submit  func(func() error) // runs a request in parallel with the walk
	waiting []s3api.Version    // to be deleted by the next request
	stale   staleEntry
}

// add deletes an object, at the latest when send is called.
//
// If the server does not accept markers together with files, add deletes a marker before it returns. Keys that cannot
// be sent in XML are deleted one by one, because the SDK would replace their characters.
func (b *batch) add(ctx context.Context, v s3api.Version) error {
	deleteOne := func() error { return b.stale.note(b.prefix, v.Key, b.fs.deleteCurrent(ctx, v)) }
	p := &b.fs.bucket.Profile
	switch {
	case !p.BatchDeletesMarkers && strings.HasSuffix(v.Key, s3object.Separator):
		return deleteOne()
	case !p.BatchDelete || !s3object.IsXMLText(v.Key):
		b.submit(deleteOne)
	default:
		if b.waiting = append(b.waiting, v); len(b.waiting) == maxBatch {
			b.send(ctx)
		}
	}
	return nil
}

// send deletes the waiting objects.
func (b *batch) send(ctx context.Context) {
	versions := b.waiting
	b.waiting = nil
	if len(versions) == 0 {
		return
	}
	b.submit(func() error {
		end := b.fs.opts.Quotas.Removing(versions...)
		errs := b.fs.bucket.DeleteVersions(ctx, versions)
		end(errs...)
		for i, err := range errs {
			if err = b.stale.note(b.prefix, versions[i].Key, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// A staleEntry records the first entry of a directory that another client has replaced or added during an operation.
// The operation leaves such entries alone and ends with an error that names this one. It is safe for concurrent use.
type staleEntry struct {
	mu  sync.Mutex
	err error
}

// note records an entry if the error of its request is ESTALE, and returns other errors.
func (s *staleEntry) note(prefix, key string, err error) error {
	if !errors.Is(err, syscall.ESTALE) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = &s3error.EntryError{Name: strings.TrimPrefix(key, prefix), Err: err}
	}
	return nil
}

// cause returns the error that names the entry, whose kind is ESTALE, or nil.
func (s *staleEntry) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
