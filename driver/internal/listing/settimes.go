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

// looksAhead is how many entries of a listing are looked at in parallel. At most as many answers wait, in the order
// of the listing.
const looksAhead = 32

// lookingAtEach lets look replace each entry of a listing, and leave out those for which it returns nil.
func lookingAtEach(
	ctx context.Context, entries iter.Seq2[fs.FileInfo, error],
	look func(context.Context, fs.FileInfo) (fs.FileInfo, error),
) iter.Seq2[fs.FileInfo, error] {
	type answer struct {
		info fs.FileInfo
		err  error
	}
	return func(yield func(fs.FileInfo, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var looks sync.WaitGroup
		defer looks.Wait()
		defer cancel()
		var ahead []chan answer
		yieldFirst := func() bool {
			first := <-ahead[0]
			ahead = ahead[1:]
			return first.info == nil && first.err == nil || yield(first.info, first.err)
		}
		for info, err := range entries {
			a := make(chan answer, 1)
			ahead = append(ahead, a)
			if err != nil {
				a <- answer{info, err}
			} else {
				looks.Go(func() {
					info, err := panics.Result(func() (fs.FileInfo, error) { return look(ctx, info) })
					a <- answer{info, err}
				})
			}
			if len(ahead) > looksAhead && !yieldFirst() {
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

// withSetTime requests the attributes of a file, to show the modification time that a client has set, or of the marker
// of a directory, whose time is the directory's. S3's listings do not have them. What does not exist, or S3 does not
// let these credentials see, stays as it was listed.
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

// unlessGhost returns nil for a directory that a server lists although only delete markers are below it.
func (l *Lister) unlessGhost(ctx context.Context, listed fs.FileInfo) (fs.FileInfo, error) {
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
