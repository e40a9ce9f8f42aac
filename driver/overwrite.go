package driver

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// copyToNew copies a version to a key that nothing has, or fails with fs.ErrExist. Servers put no condition to CopyObject, and do not say
// so (MinIO and versitygw were tried), so that an object of any size is completed from copied parts.
func (f *Fs) copyToNew(ctx context.Context, v version, a *attributes, to string) (etag string, err error) {
	c := condition{absent: true}
	if v.size > 0 {
		etag, err = f.copyByParts(ctx, v, a, to, c)
		return etag, c.failed(err)
	}
	if err := v.bucket.readTags(ctx, v.key, a); err != nil {
		return "", err
	}
	in := &s3.PutObjectInput{IfNoneMatch: c.ifNoneMatch()}
	a.put(in)
	etag, err = f.bucket.put(ctx, to, in, bytes.NewReader(nil))
	return etag, c.failed(err)
}

// failed is the error of a request that was made on the condition.
func (c condition) failed(err error) error {
	if c.absent && errors.Is(err, syscall.ESTALE) {
		return &s3Error{kind: fs.ErrExist, cause: err}
	}
	return err
}

// isCopy tells whether an ETag shows that an object is a copy of another as copyToNew makes it. It shows that neither of one that was
// uploaded by parts, nor of one that is copied by several.
func (p pair) isCopy() bool {
	if p.source.size == 0 && p.copy.size == 0 || p.source.etag == p.copy.etag {
		return true
	}
	whole := md5OfETag(p.source.etag)
	ofOnePart := md5.Sum(whole)
	return whole != nil && strings.Trim(p.copy.etag, `"`) == hex.EncodeToString(ofOnePart[:])+"-1"
}
