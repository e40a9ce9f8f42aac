package driver

import (
	"context"
	"io/fs"
	"iter"

	"github.com/babelftp/babelftp/driver/internal/listing"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// List lists a directory in the order of its keys, which is by bytes and counts a directory's final slash. The
// sequence is for one loop.
//
// It takes one request for each 1,000 entries. The first comes before List returns, so that a missing directory
// is an error here. Each other one comes while the loop reads the entries of the page before. Where S3 is far away,
// requests for several pages run in parallel, and some of them find nothing. In a directory that was listed before
// they begin along with the first.
//
// A listing holds a few pages in memory. Where many directories are listed at once, it asks for small pages, which
// takes more requests. If the loop does not read the first page for some seconds, the listing gives it up and asks
// for it again.
//
// A file and a directory of one name are both listed. A directory's modification time is zero, unless
// [Objects.ListSetTimes] asks for its marker.
func (f *Fs) List(ctx context.Context, name string) (iter.Seq2[fs.FileInfo, error], error) {
	key, err := f.keys.Key(name)
	if err != nil {
		return nil, s3error.PathError("readdir", name, err)
	}
	l := listing.Lister{
		Bucket: f.bucket, Memory: f.opts.Memory, Stats: f.opts.Endpoint.stats, SplitPoints: f.opts.Endpoint.splitPoints,
		SetTimes: f.opts.Objects.ListSetTimes, Log: f.opts.Logger,
	}
	list := l.List
	if f.bucket.IsPast() {
		list = f.asOperation(list)
	}
	entries, err := list(f.opts.withRetries(ctx), f.keys.Directory(key), f.keys.IsRoot(key))
	if err != nil {
		return nil, s3error.PathError("readdir", name, err)
	}
	return func(yield func(fs.FileInfo, error) bool) {
		for info, err := range entries {
			if err != nil {
				yield(nil, s3error.PathError("readdir", name, err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
	}, nil
}
