package listing

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"sync"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/panics"
)

// maxParallel is the number of entries of a listing that mapParallel processes in parallel.
const maxParallel = 32

// mapParallel replaces each entry of a listing by the result of f, which it calls in parallel. It keeps the order and
// skips entries for which f returns nil.
func mapParallel(
	ctx context.Context, entries iter.Seq2[fs.FileInfo, error],
	f func(context.Context, fs.FileInfo) (fs.FileInfo, error),
) iter.Seq2[fs.FileInfo, error] {
	type result struct {
		info fs.FileInfo
		err  error
	}
	return func(yield func(fs.FileInfo, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var calls sync.WaitGroup
		defer calls.Wait()
		defer cancel()
		var ahead []chan result
		yieldFirst := func() bool {
			first := <-ahead[0]
			ahead = ahead[1:]
			return first.info == nil && first.err == nil || yield(first.info, first.err)
		}
		for info, err := range entries {
			r := make(chan result, 1)
			ahead = append(ahead, r)
			if err != nil {
				r <- result{info, err}
			} else {
				calls.Go(func() {
					info, err := panics.Result(func() (fs.FileInfo, error) { return f(ctx, info) })
					r <- result{info, err}
				})
			}
			if len(ahead) > maxParallel && !yieldFirst() {
				return
			}
		}
		for len(ahead) > 0 {
			if !yieldFirst() {
				return
			}
		}
	}
}

// withSetTime adds the modification time that a client has set to a file, and the time of its marker to a directory. It
// sends a HEAD request, because listings of S3 do not contain these times. If the object does not exist or the
// credentials may not read it, the entry stays unchanged.
func (l *Lister) withSetTime(ctx context.Context, listed fs.FileInfo) (fs.FileInfo, error) {
	object, ok := listed.Sys().(*file.Object)
	if !ok {
		return listed, nil
	}
	v, a, err := l.Bucket.Head(ctx, object.Key)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return listed, nil
	}
	if err != nil {
		return nil, err
	}
	if listed.IsDir() {
		return file.NewDir(listed.Name(), object.Key, v.ModTime), nil
	}
	return file.New(listed.Name(), &v, &a), nil
}

// skipGhost returns nil for a directory that contains only delete markers. Some servers list such directories.
func (l *Lister) skipGhost(ctx context.Context, listed fs.FileInfo) (fs.FileInfo, error) {
	directory, ok := listed.(*file.Info)
	if !ok || !listed.IsDir() {
		return listed, nil
	}
	page, err := l.Bucket.List(ctx, s3api.Listing{Prefix: directory.Key(), Limit: 1})
	switch {
	case err != nil:
		return nil, err
	case page.Empty():
		return nil, nil
	}
	return listed, nil
}
