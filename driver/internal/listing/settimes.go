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

// headsAhead is how many files of a listing are requested in parallel. At most as many answers wait, in the order of the listing.
const headsAhead = 32

// withSetTimes requests the attributes of each file of a listing, to show the modification time that a client has set. S3's listings do not have
// it. A file that no longer exists, or that S3 does not let these credentials see, stays as it was listed.
func (l *Lister) withSetTimes(ctx context.Context, entries iter.Seq2[fs.FileInfo, error]) iter.Seq2[fs.FileInfo, error] {
	type answer struct {
		info fs.FileInfo
		err  error
	}
	return func(yield func(fs.FileInfo, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		waiting := make(chan chan answer, headsAhead)
		var heads sync.WaitGroup
		defer func() {
			cancel()
			for range waiting { // until the listing ends
			}
			heads.Wait()
		}()
		go func() {
			defer close(waiting)
			for info, err := range withPanics(entries) {
				a := make(chan answer, 1)
				select {
				case waiting <- a:
				case <-ctx.Done():
					return
				}
				if err != nil || info.IsDir() {
					a <- answer{info, err}
					continue
				}
				heads.Go(func() {
					err := panics.Catch(func() (err error) {
						info, err = l.withSetTime(ctx, info)
						return err
					})
					a <- answer{info, err}
				})
			}
		}()
		for a := range waiting {
			if answer := <-a; !yield(answer.info, answer.err) {
				return
			}
		}
	}
}

// withPanics yields the panic that ends entries as an error.
func withPanics(entries iter.Seq2[fs.FileInfo, error]) iter.Seq2[fs.FileInfo, error] {
	return func(yield func(fs.FileInfo, error) bool) {
		err := panics.Catch(func() error {
			entries(yield)
			return nil
		})
		if err != nil {
			yield(nil, err)
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
	return fileinfo.New(listed.Name(), &v, &a), nil
}
