package driver

import (
	"context"
	"io/fs"
	"iter"
	"sync"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// A Moment chooses the versions that a file system of the past shows: either the versions at the end of a second, or
// the last version of each file that was deleted and not stored again. The zero value is before all versions.
type Moment = s3api.Past

// At returns the file system as it was at a moment, in a bucket with versioning. It can be read, and be the source of
// [Fs.CopyTo]. Operations that change something fail with EROFS.
//
// It shows what the bucket still has of that time. If a lifecycle rule or anybody else has removed a version, the
// previous version appears instead. Objects that were stored before versioning was enabled appear with their last
// change. The times are those by which S3 distinguishes versions; AWS uses the start of the upload for an object of
// several parts.
//
// Each file takes one more request, which lists its versions. A listing takes one request for each thousand versions in
// the directory, and another one for each directory in it, because only versions show whether the directory existed. If
// twenty requests find nothing, a directory counts as existing. A listing counts as an operation
// ([Options.BeginOperation]). The zero moment takes no request.
func (f *Fs) At(m Moment) *Fs {
	m.Time = m.Time.Truncate(time.Second)
	g, opts := *f, *f.opts
	opts.Journal, opts.Owner, opts.Quotas, opts.Presigner = nil, "", Quotas{}, nil
	g.opts = &opts
	g.use(f.bucket.AsOf(m))
	return &g
}

// changeable returns EROFS for a file system of the past.
func (f *Fs) changeable() error {
	if f.bucket.IsPast() {
		return syscall.EROFS
	}
	return nil
}

// A lister is the type of [listing.Lister.List].
type lister func(ctx context.Context, prefix string, mayBeEmpty bool) (iter.Seq2[fs.FileInfo, error], error)

// asOperation turns a listing into an operation ([Options.BeginOperation]) that ends with its loop or its context.
func (f *Fs) asOperation(list lister) lister {
	return func(ctx context.Context, prefix string, mayBeEmpty bool) (iter.Seq2[fs.FileInfo, error], error) {
		begun, err := f.opts.BeginOperation()
		if err != nil {
			return nil, err
		}
		end := sync.OnceFunc(begun)
		entries, err := list(ctx, prefix, mayBeEmpty)
		if err != nil {
			end()
			return nil, err
		}
		stop := context.AfterFunc(ctx, end)
		return func(yield func(fs.FileInfo, error) bool) {
			defer end()
			defer stop()
			entries(yield)
		}, nil
	}
}
