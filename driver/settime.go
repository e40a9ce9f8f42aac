package driver

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// SetTime sets the modification time of a file. It stores the time in user metadata that rclone reads too, by letting
// S3 copy the object onto itself. The error is errors.ErrUnsupported for a directory. It is ESTALE if another client
// replaces the file at the same time; this file stays unchanged.
//
// If CopyObject does not support conditions ([Profile]), a file smaller than a part is downloaded and uploaded again,
// and S3 copies larger ones in parts. If the server does not support conditions at all, SetTime checks right before the
// copy that the file has not changed. An object that another client stores between these two requests may be replaced
// by the old bytes.
func (f *Fs) SetTime(ctx context.Context, name string, mtime time.Time) error {
	return f.changeFile(ctx, "chtimes", name, func(ctx context.Context, key string) error {
		if f.keys.IsRoot(key) {
			return errors.ErrUnsupported
		}
		// A rename that has copied the file would delete the new version, because its ETag usually stays the same. So
		// no rename in this process may run at the same time.
		locked := f.bucket.Name + s3object.Separator + key
		end, err := f.opts.Endpoint.moves.begin(ctx, [2]string{locked, locked}, true)
		if err != nil {
			return err
		}
		defer end()
		v, a, _, err := f.bucket.HeadExact(ctx, s3api.Version{Key: key})
		if errors.Is(err, fs.ErrNotExist) {
			if _, err = f.findDir(ctx, key); err == nil {
				err = errors.ErrUnsupported
			}
		}
		if err != nil {
			return err
		}
		a.SetMTime(mtime)
		rule := f.opts.Rule(ctx, name, Uploaded)
		rule.ApplyLock(&a)
		reservation := f.opts.Quotas.Begin(key)
		reservation.SetCurrent(v)
		reservation.Send(v.Size)
		made, err := f.copyObject(ctx, v, &a, key, v.Unchanged())
		reservation.End(err)
		if err != nil {
			return err
		}
		return f.bucket.CheckMetadata(ctx, key, made)
	})
}
