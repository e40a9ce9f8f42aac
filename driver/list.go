package driver

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/listing"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// ReadDirSeq lists a directory in the order of its keys, which is by bytes and counts a directory's final slash. The
// sequence is for one loop.
//
// It takes one request for each 1,000 entries. The first comes before ReadDirSeq returns, so that a missing directory
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
func (f *Fs) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
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
	entries, err := list(f.ctx, f.keys.Directory(key), f.keys.IsRoot(key))
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

// A dirFile is a directory open for Readdir and Readdirnames.
type dirFile struct {
	file.Handle
	info    *file.Info
	entries iter.Seq2[fs.FileInfo, error]
	next    func() (fs.FileInfo, error, bool) // nil until the first entry is asked for
	stop    func()
}

func (f *Fs) openDirectory(name string) (*dirFile, error) {
	key, err := f.keys.Key(name)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDirSeq(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	info := file.NewDir(f.keys.Base(key), f.keys.Directory(key), time.Time{})
	return &dirFile{Handle: file.Handle{FileName: name, Unsupported: syscall.EISDIR}, info: info, entries: entries},
		nil
}

// Stat describes the directory as it was opened.
func (d *dirFile) Stat() (fs.FileInfo, error) { return d.info, nil }

// Readdir returns the next count entries, and io.EOF after the last. A count of 0 or less stands for all that are
// left, without an io.EOF. The order is that of [Fs.ReadDirSeq].
func (d *dirFile) Readdir(count int) ([]fs.FileInfo, error) {
	if d.Closed {
		return nil, s3error.PathError("readdir", d.FileName, fs.ErrClosed)
	}
	if d.next == nil {
		d.next, d.stop = iter.Pull2(d.entries)
	}
	infos := []fs.FileInfo{}
	for count <= 0 || len(infos) < count {
		info, err, more := d.next()
		if err != nil {
			return infos, err
		}
		if !more {
			if count > 0 && len(infos) == 0 {
				return infos, io.EOF
			}
			break
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// Readdirnames is Readdir for the names alone.
func (d *dirFile) Readdirnames(count int) ([]string, error) {
	infos, err := d.Readdir(count)
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name()
	}
	return names, err
}

// Close ends the listing.
func (d *dirFile) Close() error {
	if d.Closed {
		return s3error.PathError("close", d.FileName, fs.ErrClosed)
	}
	d.Closed = true
	if d.stop != nil {
		d.stop()
	}
	return nil
}
