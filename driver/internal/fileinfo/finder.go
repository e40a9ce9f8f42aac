package fileinfo

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// A Finder looks for files and directories. Where there is none the error is fs.ErrNotExist.
type Finder struct {
	Bucket *s3api.Bucket
	Keys   keys.Space
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

// Dir describes a directory, in one request (ListObjectsV2). Its time is zero where the listing does not begin with its marker. The root always
// exists, which takes no request.
func (f Finder) Dir(ctx context.Context, key string) (*Info, error) {
	prefix := f.Keys.Directory(key)
	if f.Keys.IsRoot(key) {
		return NewDir(keys.Separator, prefix, time.Time{}), nil
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

// Both tells whether there are a file and a directory of a key. It takes one request where listings are sorted. It takes a second one
// where more than a thousand keys stand between the two, such as "foo", "foo 1", "foo 2" ... "foo/".
func (f Finder) Both(ctx context.Context, key string) (file, directory bool, err error) {
	if p := &f.Bucket.Profile; !p.SortedListings || p.SlashPrefixes {
		return f.eachOf(ctx, key)
	}
	prefix := f.Keys.Directory(key)
	page, err := f.Bucket.List(ctx, s3api.Listing{Prefix: key, Delimiter: keys.Separator})
	if err != nil {
		return false, false, err
	}
	for _, v := range page.Versions {
		file = file || v.Key == key
	}
	for _, p := range page.Prefixes {
		directory = directory || p == prefix
	}
	if directory || page.Next == "" {
		return file, directory, nil
	}
	page, err = f.Bucket.List(ctx, s3api.Listing{Prefix: prefix, Limit: 1})
	if err != nil {
		return false, false, err
	}
	return file, !page.Empty(), nil
}

// eachOf is Both by one request for each. It is for servers that do not list the file first, or do not list what begins with its name.
func (f Finder) eachOf(ctx context.Context, key string) (file, directory bool, err error) {
	found := func(_ *Info, err error) (bool, error) {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	if file, err = found(f.File(ctx, key)); err == nil {
		directory, err = found(f.Dir(ctx, key))
	}
	return file, directory, err
}
