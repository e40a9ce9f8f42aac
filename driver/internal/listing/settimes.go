package listing

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"sync"

	"github.com/babelftp/babelftp/driver/internal/fileinfo"
	"github.com/babelftp/babelftp/internal/panics"
)

// headsAhead is how many entries of a listing are requested in parallel. At most as many answers wait, in the order of the listing.
const headsAhead = 32

// withSetTimes requests the attributes of each file of a listing, to show the modification time that a client has set, and of the marker of each
// directory, whose time is the directory's. S3's listings do not have them. What does not exist, or S3 does not let these credentials see, stays as it
// was listed.
func (l *Lister) withSetTimes(ctx context.Context, entries iter.Seq2[fs.FileInfo, error]) iter.Seq2[fs.FileInfo, error] {
	type answer struct {
		info fs.FileInfo
		err  error
	}
	return func(yield func(fs.FileInfo, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var heads sync.WaitGroup
		defer heads.Wait()
		defer cancel()
		var ahead []chan answer
		yieldFirst := func() bool {
			first := <-ahead[0]
			ahead = ahead[1:]
			return yield(first.info, first.err)
		}
		for info, err := range entries {
			a := make(chan answer, 1)
			ahead = append(ahead, a)
			if err != nil {
				a <- answer{info, err}
			} else {
				heads.Go(func() {
					info, err := panics.Result(func() (fs.FileInfo, error) { return l.withSetTime(ctx, info) })
					a <- answer{info, err}
				})
			}
			if len(ahead) > headsAhead && !yieldFirst() {
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

func (l *Lister) withSetTime(ctx context.Context, listed fs.FileInfo) (fs.FileInfo, error) {
	object, ok := listed.Sys().(*fileinfo.Object)
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
		return fileinfo.NewDir(listed.Name(), object.Key, v.ModTime), nil
	}
	return fileinfo.New(listed.Name(), &v, &a), nil
}
