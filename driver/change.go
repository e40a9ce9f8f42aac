package driver

import (
	"context"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// change calls do with the key of a name and a context for its requests. It returns errors as [*fs.PathError].
func (f *Fs) change(
	ctx context.Context, op, name string, do func(ctx context.Context, key string) error,
) error {
	key, err := f.keys.Key(name)
	if err == nil {
		err = f.changeable()
	}
	if err == nil {
		err = do(f.opts.withRetries(ctx), key)
	}
	return s3error.PathError(op, name, err)
}

// changeFile is like change, but returns an error for the name of a directory.
func (f *Fs) changeFile(
	ctx context.Context, op, name string, do func(ctx context.Context, key string) error,
) error {
	return f.change(ctx, op, name, func(ctx context.Context, key string) error {
		if err := f.refuseDirectory(ctx, name, key); err != nil {
			return err
		}
		return do(ctx, key)
	})
}

// An entryName is the key of a file, or the key of a directory without the final slash.
type entryName struct {
	key       string
	directory bool // the name had a final slash, so it can only be a directory
}

// move calls do with the keys of oldname in this file system and newname in target. It returns errors as
// [*os.LinkError].
func (f *Fs) move(
	ctx context.Context, op string, target *Fs, oldname, newname string,
	do func(ctx context.Context, oldName, newName entryName) error,
) error {
	err := target.changeable()
	oldName, newName := entryName{directory: namesDirectory(oldname)}, entryName{directory: namesDirectory(newname)}
	if err == nil {
		oldName.key, err = f.keys.Key(oldname)
	}
	if err == nil {
		newName.key, err = target.keys.Key(newname)
	}
	if err == nil {
		err = do(f.opts.withRetries(ctx), oldName, newName)
	}
	return s3error.LinkError(op, oldname, newname, err)
}

// beginChange reports changed files or directories to the journal, now and when the caller calls end. The caller must
// call end even after an error, because directories are moved file by file.
func (f *Fs) beginChange(names ...entryName) (end func()) {
	note := func() {
		for _, name := range names {
			f.recordChange(name.key, f.keys.Directory(name.key))
		}
	}
	note()
	return note
}

// recordChange reports changed keys to the journal, unless no user of the bucket can resume uploads.
func (f *Fs) recordChange(keys ...string) {
	if f.opts.Owner != "" {
		f.opts.Journal.Changed(keys...)
	}
}
