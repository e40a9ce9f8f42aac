package tree

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// maxBatch is how many objects S3 deletes by one request.
const maxBatch = 1000

// A batch collects the objects of a directory that is walked through, to delete as many by one request as S3 takes.
type batch struct {
	tree    *Tree
	submit  func(func() error) // runs a request in parallel to the walk
	waiting []s3api.Version    // for the next request
	walked  string             // the last key that was added, by whichever request it is deleted

	// exact says that the versions which are added are meant, and not whatever has their keys when S3 deletes them.
	// Then replaced tells whether something has replaced one of them, which stays.
	exact    bool
	prefix   string // of all keys, where it is exact
	listed   bool   // all versions come from one listing, and nothing was deleted since
	after    string // the key before the first that waits
	replaced atomic.Bool
}

// add deletes an object, soon or by send at the latest.
//
// Where a request may not hold markers and files, a marker is deleted before it returns. Keys that XML cannot hold go
// one by one: the SDK would write other characters in their place.
func (b *batch) add(ctx context.Context, v s3api.Version) error {
	before := b.walked
	b.walked = v.Key
	switch {
	case !b.tree.Bucket.Profile.BatchDeletesMarkers && strings.HasSuffix(v.Key, s3object.Separator):
		b.listed = false
		return b.deleteOne(ctx, v)
	case !b.takesMany() || !s3object.IsXMLText(v.Key):
		b.listed = false
		b.submit(func() error { return b.deleteOne(ctx, v) })
	default:
		if len(b.waiting) == 0 {
			b.after = before
		}
		if b.waiting = append(b.waiting, v); len(b.waiting) == maxBatch {
			b.send(ctx)
		}
	}
	return nil
}

// takesMany tells whether S3 deletes many objects by one request. Where exact versions are meant and it compares
// their ETags by requests for one object only, it does not. Without conditions a sorted listing shows right before
// what is there.
func (b *batch) takesMany() bool {
	p := &b.tree.Bucket.Profile
	return p.BatchDelete && (!b.exact || p.ConditionalBatchDelete || !p.ConditionalDelete && p.SortedListings)
}

// deleteOne deletes an object by a request of its own.
func (b *batch) deleteOne(ctx context.Context, v s3api.Version) error {
	if !b.exact {
		return b.tree.delete(ctx, v)
	}
	return b.noteReplaced(b.tree.deleteVersion(ctx, v))
}

// noteReplaced records that a version was replaced, and returns other errors.
func (b *batch) noteReplaced(err error) error {
	if errors.Is(err, syscall.ESTALE) {
		b.replaced.Store(true)
		return nil
	}
	return err
}

// send deletes what waits.
func (b *batch) send(ctx context.Context) {
	versions, after, listed := b.waiting, b.after, b.listed
	b.waiting, b.listed = nil, false
	if len(versions) == 0 {
		return
	}
	b.submit(func() error {
		end := b.tree.Quotas.Removing(versions...)
		var errs []error
		switch {
		case !b.exact:
			errs = b.tree.Bucket.DeleteAll(ctx, versions)
		case listed:
			errs = b.tree.Bucket.DeleteVersions(ctx, nil, versions)
		default:
			errs = b.tree.Bucket.DeleteVersions(ctx, &s3api.Listing{Prefix: b.prefix, After: after}, versions)
		}
		end(errs...)
		for _, err := range errs {
			if err = b.noteReplaced(err); err != nil {
				return err
			}
		}
		return nil
	})
}
