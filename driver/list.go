package driver

import (
	"context"
	"io/fs"
	"iter"

	"github.com/babelftp/babelftp/driver/internal/listing"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// List lists a directory in the order of its keys, which are compared by bytes and include the final slash of
// directories. The sequence can be used for one loop only.
//
// Listing takes one request for each 1,000 entries. The first one is sent before List returns, so that List can report
// a missing directory. Each further page is requested while the loop reads the previous one. If S3 is far away, several
// pages are requested in parallel, and some of these requests find nothing. If the directory was listed before, they
// are sent together with the first request.
//
// A listing holds a few pages in memory. If many directories are listed at the same time, it requests smaller pages,
// which takes more requests. If the loop does not read the first page for some seconds, the listing discards the page
// and requests it again later.
//
// If a file and a directory have the same name, both are listed. The modification time of a directory is zero, unless
// [Objects.ListSetTimes] requests the time of its marker.
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
