// Package listing lists directories with ListObjectsV2.
//
// [Lister.List] returns a sequence of entries:
//
//	entries, err := lister.List(ctx, "reports/", false)
//	if err != nil {
//		return err // fs.ErrNotExist if the directory does not exist
//	}
//	for info, err := range entries {
//		...
//	}
//
// While the client reads one page of a listing, the Lister requests the next one (prefetch.go). If S3 is far away and
// the directory was listed before, it splits the listing into key ranges and requests them in parallel (split.go). A
// [SplitPointCache] contains the keys between the ranges. Prefetched pages use revocable memory, which the memory
// budget can take back for uploads.
package listing

import (
	"context"
	"io/fs"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// A Lister lists directories of a bucket.
type Lister struct {
	Bucket      *s3api.Bucket
	Memory      *membudget.Budget
	Stats       *s3api.Stats
	SplitPoints *SplitPointCache // shared by all listers of an S3 server
	SetTimes    bool             // send a HEAD request for each entry to get the modification time set by a client
	Log         *slog.Logger
}

// List lists the directory whose keys begin with prefix, in the order of the keys. It requests the first page before it
// returns. If the directory is empty, the error is fs.ErrNotExist, unless mayBeEmpty is set. The sequence may be used
// for one loop only and ends with the first error.
func (l *Lister) List(ctx context.Context, prefix string, mayBeEmpty bool) (iter.Seq2[fs.FileInfo, error], error) {
	entries, err := l.list(ctx, prefix, mayBeEmpty)
	if err == nil && l.Bucket.Profile.GhostPrefixes {
		entries = mapParallel(ctx, entries, l.skipGhost)
	}
	if err == nil && l.SetTimes {
		entries = mapParallel(ctx, entries, l.withSetTime)
	}
	return entries, err
}

func (l *Lister) list(ctx context.Context, prefix string, mayBeEmpty bool) (iter.Seq2[fs.FileInfo, error], error) {
	f := newPrefetcher(ctx, l, prefix)
	first, err := f.begin()
	if err == nil && !mayBeEmpty {
		err = l.exists(ctx, prefix, first)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	unread := time.AfterFunc(unreadTime, func() {
		first = nil // so that the session does not keep the page in memory
		f.close()
	})
	return func(yield func(fs.FileInfo, error) bool) {
		if !unread.Stop() {
			again, err := l.list(ctx, prefix, true)
			if err != nil {
				yield(nil, err)
				return
			}
			again(yield)
			return
		}
		pages := f.pages(first)
		first = nil // so that the page is not kept in memory while the others are read
		var before []string
		for page, err := range pages {
			if err != nil {
				yield(nil, err)
				return
			}
			before = removeRepeated(page, before)
			for info := range l.entries(prefix, page) {
				if !yield(info, nil) {
					return
				}
			}
		}
	}, nil
}

// exists returns fs.ErrNotExist if the first page shows that the directory does not exist. Some servers list prefixes
// that contain only delete markers. If the page contains only prefixes of such a server, exists checks with a listing
// without a delimiter.
func (l *Lister) exists(ctx context.Context, prefix string, first *s3api.Page) error {
	if l.Bucket.Profile.GhostPrefixes && len(first.Versions) == 0 && first.Unreadable == 0 && !first.Empty() {
		var err error
		if first, err = l.Bucket.List(ctx, s3api.Listing{Prefix: prefix, Limit: 1}); err != nil {
			return err
		}
	}
	if first.Empty() {
		return fs.ErrNotExist
	}
	return nil
}

// entries merges the files and the directories of a page of the directory with the given prefix. It skips the marker of
// the directory itself and keys that cannot be represented as a pathname.
func (l *Lister) entries(prefix string, p *s3api.Page) iter.Seq[*file.Info] {
	return func(yield func(*file.Info) bool) {
		files, directories := p.Versions, p.Prefixes
		for len(files) > 0 || len(directories) > 0 {
			var key, name string
			var info *file.Info
			if len(directories) == 0 || len(files) > 0 && files[0].Key < directories[0] {
				key = files[0].Key
				name = key[len(prefix):]
				info = file.New(name, &files[0], &s3object.Attributes{})
				files = files[1:]
			} else {
				key = directories[0]
				name = strings.TrimSuffix(key[len(prefix):], s3object.Separator)
				info = file.NewDir(name, key, time.Time{})
				directories = directories[1:]
			}
			switch {
			case key == prefix: // the marker of the directory itself
			case !s3object.Representable(name):
				l.Log.Debug("skipped a key that cannot be represented as a pathname; rename the object",
					"bucket", l.Bucket.Name, "key", key)
			case !yield(info):
				return
			}
		}
	}
}
