package driver

import (
	"context"
	"errors"
	"path"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// maxLinkLifetime is the longest validity of a link that S3 allows:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
const maxLinkLifetime = 7 * 24 * time.Hour

// A Presigner signs a request that another program will send. *s3.PresignClient is one.
type Presigner = s3api.Presigner

// URI names the object of a file as S3's own tools do, in percent-encoding: "s3://bucket/caf%C3%A9". Whether there is
// one it does not ask. A name that no file can have gives "".
func (f *Fs) URI(name string) string {
	key, err := f.keys.Key(name)
	if err != nil {
		return ""
	}
	return f.bucket.URI(key)
}

// Presign returns a link by which any HTTP client downloads a file, under the name that it has here. The link works
// for the duration valid, but no longer than the credentials that signed it. One request asks whether there is such a
// file.
//
// The error is EINVAL for less than a second or more than seven days, and errors.ErrUnsupported without
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
		// a fraction of a second would become the SDK's default of 15 minutes
		return "", s3error.ErrInvalid
	}
	return f.bucket.Presign(ctx, f.opts.Presigner, key, path.Base(key), valid)
}
