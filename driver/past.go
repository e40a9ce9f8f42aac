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

// A Moment chooses the versions that a file system of the past shows: those at the end of a second, or what was deleted
// and has not been stored again, each file as it was last. The zero value is before all versions.
type Moment = s3api.Past

// At returns the file system as it was at a moment, in a bucket that keeps versions. It can be read, and be the source
// of [Fs.CopyTo]. What changes something fails with EROFS.
//
// It has what the bucket still has of that time. If a lifecycle rule, or anybody, has removed a version, the previous
// version shows in its place. What was stored while the bucket kept no versions is there since its last change. The
// times are those by which S3 distinguishes the versions. For an object of several parts AWS returns when its upload
// began.
//
// A file takes a request more, which lists its versions. A listing takes a request for each thousand versions in the
// directory. It takes another one for each directory in it, because only versions tell whether that was there. After
// twenty requests that find nothing, a directory counts as one that was. A listing is an operation of
// [Options.BeginOperation]. The zero moment takes no request.
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

// A lister is [listing.Lister.List].
type lister func(ctx context.Context, prefix string, mayBeEmpty bool) (iter.Seq2[fs.FileInfo, error], error)

// asOperation makes a listing an operation, which ends with its loop, or with the context.
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
