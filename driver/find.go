package driver

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// findFile describes a file with one HeadObject request. The error is fs.ErrNotExist if the file does not exist, and
// EISDIR for the root.
func (f *Fs) findFile(ctx context.Context, key string) (*file.Info, error) {
	if f.keys.IsRoot(key) {
		return nil, syscall.EISDIR
	}
	v, a, err := f.bucket.Head(ctx, key)
	if err != nil {
		return nil, err
	}
	return file.New(f.keys.Base(key), &v, &a), nil
}

// findDir describes a directory with one ListObjectsV2 request. The error is fs.ErrNotExist if the directory does not
// exist. Its time is zero if the listing does not begin with its marker. The root always exists, which takes no
// request.
func (f *Fs) findDir(ctx context.Context, key string) (*file.Info, error) {
	prefix := f.keys.Directory(key)
	if f.keys.IsRoot(key) {
		return file.NewDir(s3object.Separator, prefix, time.Time{}), nil
	}
	page, err := f.bucket.List(ctx, s3api.Listing{Prefix: prefix, Limit: 1})
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
	return file.NewDir(f.keys.Base(key), prefix, modTime), nil
}

// findDirAndMarker is like findDir, but also finds the time of the marker on servers that do not sort listings and list
// the marker later.
func (f *Fs) findDirAndMarker(ctx context.Context, key string) (*file.Info, error) {
	info, err := f.findDir(ctx, key)
	if err != nil || f.keys.IsRoot(key) || f.bucket.Profile.SortedListings || !info.ModTime().IsZero() {
		return info, err
	}
	marker, _, err := f.bucket.Head(ctx, info.Key())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return info, nil
	case err != nil:
		return nil, err
	}
	return file.NewDir(info.Name(), info.Key(), marker.ModTime), nil
}

// findBoth reports whether a key is a file and whether it is a directory. It takes one request if the server sorts
// listings, and two otherwise. Even with sorted listings, it takes two if more than a thousand keys are between the
// file and the directory, such as "foo", "foo 1", "foo 2" ... "foo/", or if the server may list directories that no
// longer exist.
func (f *Fs) findBoth(ctx context.Context, key string) (isFile, isDirectory bool, err error) {
	if p := &f.bucket.Profile; !p.SortedListings || p.SlashPrefixes { // the file is not listed first, or not at all
		if isFile, err = exists(f.findFile(ctx, key)); err == nil {
			isDirectory, err = exists(f.findDir(ctx, key))
		}
		return isFile, isDirectory, err
	}
	page, err := f.bucket.List(ctx, s3api.Listing{Prefix: key, Delimiter: s3object.Separator})
	if err != nil {
		return false, false, err
	}
	isFile = slices.ContainsFunc(page.Versions, func(v s3api.Version) bool { return v.Key == key })
	isDirectory = slices.Contains(page.Prefixes, f.keys.Directory(key))
	if !isDirectory && page.Next != "" || isDirectory && f.bucket.Profile.GhostPrefixes {
		isDirectory, err = exists(f.findDir(ctx, key))
	}
	return isFile, isDirectory, err
}

// exists reports whether a file or a directory exists, given the result of findFile or findDir.
func exists(_ *file.Info, err error) (bool, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
