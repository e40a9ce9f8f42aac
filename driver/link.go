package driver

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// maxLinkLifetime is the maximum validity of a link in S3:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
const maxLinkLifetime = 7 * 24 * time.Hour

// A Presigner signs a request that another program will send. *s3.PresignClient implements it.
type Presigner = s3api.Presigner

// URI returns the name of a file's object as S3's own tools write it, percent-encoded: "s3://bucket/caf%C3%A9". It does
// not check whether the object exists. If no file can have this name, it returns the empty string.
func (f *Fs) URI(name string) string {
	key, err := f.keys.Key(name)
	if err != nil {
		return ""
	}
	return f.bucket.URI(key)
}

// Presign returns a link with which any HTTP client can download a file under its name. The link works while it is
// valid, but no longer than the credentials that signed it. One request checks that the file exists.
//
// The error is EINVAL if valid is less than a second or more than seven days, and errors.ErrUnsupported without
// [Options.Presigner].
func (f *Fs) Presign(ctx context.Context, name string, valid time.Duration) (string, error) {
	url, err := f.presign(f.opts.withRetries(ctx), name, valid)
	if err != nil {
		return "", s3error.PathError("presign", name, err)
	}
	return url, nil
}

func (f *Fs) presign(ctx context.Context, name string, valid time.Duration) (string, error) {
	if f.opts.Presigner == nil {
		return "", errors.ErrUnsupported
	}
	key, err := f.fileKey(ctx, name, 0)
	if err != nil {
		return "", err
	}
	if valid < time.Second || valid > maxLinkLifetime {
		// the SDK replaces a fraction of a second by its default of 15 minutes
		return "", s3error.ErrInvalid
	}
	return f.bucket.Presign(ctx, f.opts.Presigner, key, path.Base(key), valid)
}
