package driver

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// SetTime sets the modification time of a file; S3 has no other time. It stores the time in the user metadata that
// rclone reads too, so S3 copies the object onto itself. The error is errors.ErrUnsupported for a directory. It is
// ESTALE if another client replaces the file meanwhile, which then stays as it is.
//
// If S3 has no condition for the copy ([Profile]), a file smaller than a part goes through this process, and S3 copies
// others by parts. If the server has no conditions at all, SetTime checks right before the copy that the file is still
// the same. What another client stores between these two requests may be replaced by the old bytes.
func (f *Fs) SetTime(ctx context.Context, name string, mtime time.Time) error {
	return f.changeFile(ctx, "chtimes", name, func(ctx context.Context, key string) error {
		if f.keys.IsRoot(key) {
			return errors.ErrUnsupported
		}
		// A rename that has copied the file would delete the new version, because most often the ETag stays the same.
		// So no rename of this process runs meanwhile.
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
