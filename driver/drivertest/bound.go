package drivertest

import (
	"context"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
)

// An Fs is a file system of the driver that belongs to one session. It has the methods of afero, and the methods for
// which afero has no equivalent with the same bound context. So the suite tests the afero adapter together with the
// file system.
type Fs struct {
	afero.Fs
	Driver *driver.Fs
	ctx    context.Context
}

// Bind binds a context to a file system.
func Bind(ctx context.Context, f *driver.Fs) *Fs { return &Fs{f.Afero(ctx), f, ctx} }

// WithContext returns the same file system with another context.
func (f *Fs) WithContext(ctx context.Context) *Fs { return Bind(ctx, f.Driver) }

// At returns the file system as it was at a moment.
func (f *Fs) At(m driver.Moment) *Fs { return Bind(f.ctx, f.Driver.At(m)) }

// Name is [driver.Fs.Name].
func (f *Fs) Name() string { return f.Driver.Name() }

// StatFile is [driver.Fs.StatFile] with the bound context.
func (f *Fs) StatFile(name string) (fs.FileInfo, error) { return f.Driver.StatFile(f.ctx, name) }

// StatDir is [driver.Fs.StatDir] with the bound context.
func (f *Fs) StatDir(name string) (fs.FileInfo, error) { return f.Driver.StatDir(f.ctx, name) }

// PendingUpload is [driver.Fs.PendingUpload] with the bound context.
func (f *Fs) PendingUpload(name string) (fs.FileInfo, error) {
	return f.Driver.PendingUpload(f.ctx, name)
}

// List is [driver.Fs.List] with the bound context.
func (f *Fs) List(name string) (iter.Seq2[fs.FileInfo, error], error) {
	return f.Driver.List(f.ctx, name)
}

// RemoveFile is [driver.Fs.RemoveFile] with the bound context.
func (f *Fs) RemoveFile(name string) error { return f.Driver.RemoveFile(f.ctx, name) }

// RemoveDir is [driver.Fs.RemoveDir] with the bound context.
func (f *Fs) RemoveDir(name string) error { return f.Driver.RemoveDir(f.ctx, name) }

// RenameTo is [driver.Fs.RenameTo] with the bound context.
func (f *Fs) RenameTo(target *Fs, oldname, newname string) error {
	return f.Driver.RenameTo(f.ctx, target.Driver, oldname, newname)
}

// Copy is [driver.Fs.CopyTo] within one file system.
func (f *Fs) Copy(ctx context.Context, oldname, newname string) error {
	return f.Driver.CopyTo(ctx, f.Driver, oldname, newname)
}

// CopyTo is [driver.Fs.CopyTo].
func (f *Fs) CopyTo(ctx context.Context, target *Fs, oldname, newname string) error {
	return f.Driver.CopyTo(ctx, target.Driver, oldname, newname)
}

// MoveObject is [driver.Fs.MoveObject].
func (f *Fs) MoveObject(ctx context.Context, oldname, newname string) error {
	return f.Driver.MoveObject(ctx, oldname, newname)
}

// IsMoving is [driver.Fs.IsMoving].
func (f *Fs) IsMoving(ctx context.Context, oldname, newname string) (bool, error) {
	return f.Driver.IsMoving(ctx, oldname, newname)
}

// Hash is [driver.Fs.Hash].
func (f *Fs) Hash(ctx context.Context, name, algorithm string, from, to int64) (sum []byte, end int64, err error) {
	return f.Driver.Hash(ctx, name, algorithm, from, to)
}

// Presign is [driver.Fs.Presign].
func (f *Fs) Presign(ctx context.Context, name string, valid time.Duration) (string, error) {
	return f.Driver.Presign(ctx, name, valid)
}

// URI is [driver.Fs.URI].
func (f *Fs) URI(name string) string { return f.Driver.URI(name) }

// OpenAt opens a file for reading or writing at an offset. The file has the methods of a [driver.Reader] or a
// [driver.Writer]; other methods of [afero.File] panic.
func (f *Fs) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		r, err := f.Driver.OpenReader(f.ctx, name, offset)
		if err != nil {
			return nil, err
		}
		return readFile{r, others{}}, nil
	}
	w, err := f.Driver.OpenWriter(f.ctx, name, flag, offset, nil)
	if err != nil {
		return nil, err
	}
	return writeFile{w, others{}}, nil
}

type (
	readFile struct {
		*driver.Reader
		others
	}
	writeFile struct {
		*driver.Writer
		others
	}
	// others stands in for the methods of a file that the suite does not call.
	others struct{ afero.File }
)

// WriteString calls Write.
func (w writeFile) WriteString(s string) (int, error) { return w.Write([]byte(s)) }
