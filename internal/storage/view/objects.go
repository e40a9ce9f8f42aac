package view

import (
	"context"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/babelftp/babelftp/driver"
)

// Of makes the store of a bucket, or of a part of one. A name in another store, for RenameTo and CopyTo, must be in
// one that Of has made too.
func Of(bucket *driver.Fs) Store { return objects{bucket} }

// objects is the driver's file system, whose methods have no context, and whose files are those of afero.
type objects struct{ fs *driver.Fs }

func (o objects) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	return o.fs.WithContext(ctx).Stat(name)
}

func (o objects) StatFile(ctx context.Context, name string) (fs.FileInfo, error) {
	return o.fs.WithContext(ctx).StatFile(name)
}

func (o objects) StatDir(ctx context.Context, name string) (fs.FileInfo, error) {
	return o.fs.WithContext(ctx).StatDir(name)
}

func (o objects) List(ctx context.Context, name string) (iter.Seq2[fs.FileInfo, error], error) {
	return o.fs.WithContext(ctx).ReadDirSeq(name)
}

func (o objects) PendingUpload(ctx context.Context, name string) (fs.FileInfo, error) {
	return o.fs.WithContext(ctx).PendingUpload(name)
}

func (o objects) OpenReader(ctx context.Context, name string, offset int64) (Reader, error) {
	file, err := o.fs.WithContext(ctx).OpenAt(name, os.O_RDONLY, offset)
	if err != nil {
		return nil, err
	}
	return file.(Reader), nil
}

func (o objects) OpenWriter(ctx context.Context, name string, flag int, offset int64) (Writer, error) {
	file, err := o.fs.WithContext(ctx).OpenAt(name, flag|os.O_WRONLY, offset)
	if err != nil {
		return nil, err
	}
	return file.(Writer), nil
}

func (o objects) Mkdir(ctx context.Context, name string) error {
	return o.fs.WithContext(ctx).Mkdir(name, 0)
}

func (o objects) MkdirAll(ctx context.Context, name string) error {
	return o.fs.WithContext(ctx).MkdirAll(name, 0)
}

func (o objects) RemoveFile(ctx context.Context, name string) error {
	return o.fs.WithContext(ctx).RemoveFile(name)
}

func (o objects) RemoveDir(ctx context.Context, name string) error {
	return o.fs.WithContext(ctx).RemoveDir(name)
}

func (o objects) RemoveAll(ctx context.Context, name string) error {
	return o.fs.WithContext(ctx).RemoveAll(name)
}

func (o objects) RenameTo(ctx context.Context, to Store, oldname, newname string) error {
	return o.fs.WithContext(ctx).RenameTo(to.(objects).fs.WithContext(ctx), oldname, newname)
}

func (o objects) CopyTo(ctx context.Context, to Store, oldname, newname string) error {
	return o.fs.CopyTo(ctx, to.(objects).fs.WithContext(ctx), oldname, newname)
}

func (o objects) SetTime(ctx context.Context, name string, modified time.Time) error {
	return o.fs.WithContext(ctx).Chtimes(name, modified, modified)
}

func (o objects) Hash(
	ctx context.Context, name, algorithm string, from, to int64,
) (sum []byte, end int64, err error) {
	return o.fs.Hash(ctx, name, algorithm, from, to)
}

func (o objects) Presign(ctx context.Context, name string, valid time.Duration) (string, error) {
	return o.fs.Presign(ctx, name, valid)
}

func (o objects) At(m Moment) Store {
	switch {
	case m.Deleted:
		return objects{o.fs.Deleted()}
	case m.Time.IsZero():
		return objects{o.fs.Empty()}
	}
	return objects{o.fs.AsOf(m.Time)}
}

func (o objects) URI(name string) string { return o.fs.URI(name) }
