package view

import (
	"context"
	"crypto/sha256"

	"github.com/babelftp/babelftp/driver"
)

// NewStore returns the store of a bucket or of a part of it. RenameTo and CopyTo require that NewStore also returned
// the other store.
func NewStore(bucket *driver.Fs) Store { return objects{bucket} }

// objects is the file system of the driver. It only has methods because Go compares signatures exactly: a method that
// returns a *driver.Reader does not implement one that returns a Reader.
type objects struct{ *driver.Fs }

func (o objects) OpenReader(ctx context.Context, name string, offset int64) (Reader, error) {
	r, err := o.Fs.OpenReader(ctx, name, offset)
	if err != nil {
		return nil, err // not a non-nil Reader that holds nil
	}
	return r, nil
}

func (o objects) OpenWriter(
	ctx context.Context, name string, flag int, offset int64, sum *[sha256.Size]byte,
) (Writer, error) {
	w, err := o.Fs.OpenWriter(ctx, name, flag, offset, sum)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (o objects) Create(ctx context.Context, name, object string, sum *[sha256.Size]byte) (Writer, error) {
	w, err := o.Fs.Create(ctx, name, object, sum)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func (o objects) RenameTo(ctx context.Context, to Store, oldname, newname string) error {
	return o.Fs.RenameTo(ctx, to.(objects).Fs, oldname, newname)
}

func (o objects) CopyTo(ctx context.Context, to Store, oldname, newname string) error {
	return o.Fs.CopyTo(ctx, to.(objects).Fs, oldname, newname)
}

func (o objects) At(m Moment) Store { return objects{o.Fs.At(m)} }
