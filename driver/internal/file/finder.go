package file

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// A Finder looks for files and directories. Where there is none the error is fs.ErrNotExist.
type Finder struct {
	Bucket *s3api.Bucket
	Keys   s3object.KeySpace
}

// File describes a file, in one request (HeadObject). The root is EISDIR.
func (f Finder) File(ctx context.Context, key string) (*Info, error) {
	if f.Keys.IsRoot(key) {
		return nil, syscall.EISDIR
	}
	v, a, err := f.Bucket.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	return New(f.Keys.Base(key), &v, &a), nil
}

// Dir describes a directory, in one request (ListObjectsV2). Its time is zero where the listing does not begin with
// its marker. The root always exists, which takes no request.
func (f Finder) Dir(ctx context.Context, key string) (*Info, error) {
	prefix := f.Keys.Directory(key)
	if f.Keys.IsRoot(key) {
		return NewDir(s3object.Separator, prefix, time.Time{}), nil
	}
	page, err := f.Bucket.List(ctx, s3api.Listing{Prefix: prefix, Limit: 1})
	if err != nil {
		return nil, err
	}
	if page.Empty() {
		return nil, fs.ErrNotExist
	}
	var modTime time.Time
	for _, v := range page.Versions {
		if v.Key == prefix {
			modTime = v.ModTime
		}
	}
	return NewDir(f.Keys.Base(key), prefix, modTime), nil
}

// DirAndMarker is Dir with the time of the marker, which servers whose listings are not sorted may list later.
func (f Finder) DirAndMarker(ctx context.Context, key string) (*Info, error) {
	info, err := f.Dir(ctx, key)
	if err != nil || f.Keys.IsRoot(key) || f.Bucket.Profile.SortedListings || !info.ModTime().IsZero() {
		return info, err
	}
	marker, _, err := f.Bucket.Head(ctx, info.Key())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return info, nil
	case err != nil:
		return nil, err
	}
	return NewDir(info.Name(), info.Key(), marker.ModTime), nil
}

// Both tells whether there are a file and a directory of a key. It takes one request where listings are sorted, and
// two elsewhere. It also takes a second one where more than a thousand keys stand between the two, such as "foo",
// "foo 1", "foo 2" ... "foo/". The same goes for a directory that the server may list although it is gone.
func (f Finder) Both(ctx context.Context, key string) (file, directory bool, err error) {
	if p := &f.Bucket.Profile; !p.SortedListings || p.SlashPrefixes { // the file is not listed first, or not at all
		if file, err = exists(f.File(ctx, key)); err == nil {
			directory, err = exists(f.Dir(ctx, key))
		}
		return file, directory, err
	}
	page, err := f.Bucket.List(ctx, s3api.Listing{Prefix: key, Delimiter: s3object.Separator})
	if err != nil {
		return false, false, err
	}
	file = slices.ContainsFunc(page.Versions, func(v s3api.Version) bool { return v.Key == key })
	directory = slices.Contains(page.Prefixes, f.Keys.Directory(key))
	if !directory && page.Next != "" || directory && f.Bucket.Profile.GhostPrefixes {
		directory, err = exists(f.Dir(ctx, key))
	}
	return file, directory, err
}

// exists tells from the answer to a look whether there is something.
func exists(_ *Info, err error) (bool, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
