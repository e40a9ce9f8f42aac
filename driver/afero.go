package driver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"syscall"
	"time"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Afero returns the file system as an [afero.Fs], for programs that only know this interface. Canceling ctx stops all
// of its operations and the transfers of the files that it opens. Permission bits are ignored. An object cannot be
// overwritten in place, so os.O_RDWR needs os.O_TRUNC or os.O_EXCL, and then means the same as os.O_WRONLY.
func (f *Fs) Afero(ctx context.Context) afero.Fs { return aferoFs{f, ctx} }

// An aferoFs binds a context to a file system, because the methods of afero take none.
type aferoFs struct {
	fs  *Fs
	ctx context.Context
}

// accessMode masks the bits of a flag that distinguish reading from writing.
const accessMode = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

func (a aferoFs) OpenFile(name string, flag int, _ fs.FileMode) (afero.File, error) {
	switch flag & accessMode {
	case os.O_RDONLY:
		r, err := a.fs.OpenReader(a.ctx, name, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) {
			return a.openDirectory(name)
		}
		if err != nil {
			return nil, err
		}
		return aferoReader{r, rest{refusal{name, syscall.EBADF}}}, nil
	case os.O_RDWR:
		if flag&(os.O_TRUNC|os.O_EXCL) == 0 {
			return nil, s3error.PathError("open", name, errors.ErrUnsupported)
		}
	}
	w, err := a.fs.OpenWriter(a.ctx, name, flag, 0, nil)
	if err != nil {
		return nil, err
	}
	return aferoWriter{w, rest{refusal{name, syscall.EBADF}}}, nil
}

func (a aferoFs) openDirectory(name string) (afero.File, error) {
	entries, err := a.fs.List(a.ctx, name)
	if err != nil {
		return nil, s3error.PathError("open", name, errors.Unwrap(err))
	}
	key, err := a.fs.keys.Key(name)
	d := &aferoDir{
		rest: rest{refusal{name, syscall.EISDIR}},
		info: file.NewDir(a.fs.keys.Base(key), a.fs.keys.Directory(key), time.Time{}),
	}
	d.next, d.stop = iter.Pull2(entries)
	return d, err
}

func (a aferoFs) Create(name string) (afero.File, error) {
	return a.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0)
}
func (a aferoFs) Open(name string) (afero.File, error)      { return a.OpenFile(name, os.O_RDONLY, 0) }
func (a aferoFs) Stat(name string) (fs.FileInfo, error)     { return a.fs.Stat(a.ctx, name) }
func (a aferoFs) Mkdir(name string, _ fs.FileMode) error    { return a.fs.Mkdir(a.ctx, name) }
func (a aferoFs) MkdirAll(name string, _ fs.FileMode) error { return a.fs.MkdirAll(a.ctx, name) }
func (a aferoFs) RemoveAll(name string) error               { return a.fs.RemoveAll(a.ctx, name) }
func (a aferoFs) Rename(oldname, newname string) error {
	return a.fs.RenameTo(a.ctx, a.fs, oldname, newname)
}
func (a aferoFs) Chtimes(name string, _, mtime time.Time) error {
	return a.fs.SetTime(a.ctx, name, mtime)
}
func (a aferoFs) Name() string { return a.fs.Name() }

// Remove removes a file or, if no file with this name exists, an empty directory.
func (a aferoFs) Remove(name string) error {
	err := a.fs.RemoveFile(a.ctx, name)
	if errors.Is(err, syscall.EISDIR) {
		return a.fs.RemoveDir(a.ctx, name)
	}
	return err
}

// Chmod fails, because S3 does not store permission bits.
func (a aferoFs) Chmod(name string, _ fs.FileMode) error {
	return s3error.PathError("chmod", name, errors.ErrUnsupported)
}

// Chown fails, because the owner of an object is an S3 account.
func (a aferoFs) Chown(name string, _, _ int) error {
	return s3error.PathError("chown", name, errors.ErrUnsupported)
}

// An aferoReader is a file open for reading. The methods of Reader take precedence over the methods of rest.
type aferoReader struct {
	*Reader
	rest
}

// An aferoWriter is a file open for writing.
type aferoWriter struct {
	*Writer
	rest
}

func (w aferoWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// WriteAt is Write if offset is the end of the written bytes. Otherwise the error is errors.ErrUnsupported.
func (w aferoWriter) WriteAt(p []byte, offset int64) (int, error) {
	if _, err := w.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	return w.Write(p)
}

// Truncate does nothing if the file has this size. Otherwise the error is errors.ErrUnsupported.
func (w aferoWriter) Truncate(size int64) error {
	_, err := w.Seek(size, io.SeekStart)
	return err
}

// An aferoDir is an open directory. It supports Readdir and Readdirnames.
type aferoDir struct {
	rest
	info   fs.FileInfo
	next   func() (fs.FileInfo, error, bool)
	stop   func()
	closed bool
}

func (d *aferoDir) Stat() (fs.FileInfo, error) { return d.info, nil }

// Readdir returns the next count entries, or io.EOF after the last one. If count is 0 or negative, it returns all
// remaining entries and never io.EOF. The order is the order of [Fs.List].
func (d *aferoDir) Readdir(count int) ([]fs.FileInfo, error) {
	infos := []fs.FileInfo{}
	for !d.closed && (count <= 0 || len(infos) < count) {
		info, err, more := d.next()
		switch {
		case err != nil:
			return infos, err
		case more:
			infos = append(infos, info)
		case count > 0 && len(infos) == 0:
			return infos, io.EOF
		default:
			return infos, nil
		}
	}
	return infos, d.open("readdir")
}

// Readdirnames is like Readdir, but returns only the names.
func (d *aferoDir) Readdirnames(count int) ([]string, error) {
	infos, err := d.Readdir(count)
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name()
	}
	return names, err
}

func (d *aferoDir) Close() error {
	err := d.open("close")
	d.closed = true
	d.stop()
	return err
}

// open returns fs.ErrClosed after Close.
func (d *aferoDir) open(op string) error {
	if d.closed {
		return s3error.PathError(op, d.name, fs.ErrClosed)
	}
	return nil
}

// A rest has the methods of [afero.File] that a kind of file does not support. It is embedded one level deeper than the
// supported methods, so that Go promotes the supported ones.
type rest struct{ refusal }

// A refusal returns an error for every operation on an open file.
type refusal struct {
	name string
	err  error
}

func (r refusal) Name() string                       { return r.name }
func (r refusal) Sync() error                        { return nil }
func (r refusal) Read([]byte) (int, error)           { return 0, r.refuse("read") }
func (r refusal) ReadAt([]byte, int64) (int, error)  { return 0, r.refuse("read") }
func (r refusal) Seek(int64, int) (int64, error)     { return 0, r.refuse("seek") }
func (r refusal) Write([]byte) (int, error)          { return 0, r.refuse("write") }
func (r refusal) WriteAt([]byte, int64) (int, error) { return 0, r.refuse("write") }
func (r refusal) WriteString(string) (int, error)    { return 0, r.refuse("write") }
func (r refusal) Truncate(int64) error               { return r.refuse("truncate") }
func (r refusal) Readdir(int) ([]fs.FileInfo, error) { return nil, r.refuse("readdir") }
func (r refusal) Readdirnames(int) ([]string, error) { return nil, r.refuse("readdir") }
func (r refusal) refuse(op string) error             { return s3error.PathError(op, r.name, r.err) }
