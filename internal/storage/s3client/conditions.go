package s3client

import (
	"context"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Experiments on conditional requests.

// contenders is the number of requests that try to store one object at the same time. If a server checks the condition
// before it stores, without a lock, more than one request succeeds.
const contenders = 4

// refused reports whether a request failed because its condition does not hold. It returns all other errors.
func refused(err error) (bool, error) {
	if s3error.Status(err) == http.StatusPreconditionFailed {
		return true, nil
	}
	return false, err
}

// conditional reports whether a request fails with the ETag of no object, and succeeds with the ETag of the sample.
func (x *sample) conditional(request func(ifMatch *string) error) (bool, error) {
	right := x.ifMatch(x.etag)
	if refused, err := refused(request(x.ifMatch(wrongETag))); !refused {
		return false, err
	}
	err := request(right)
	return err == nil, err
}

// exclusivePut tries to overwrite the object with If-None-Match, and then to store another object with several
// requests at once.
func (x *sample) exclusivePut(ctx context.Context) (bool, error) {
	_, err := x.put(ctx, &s3.PutObjectInput{IfNoneMatch: aws.String("*")})
	if refused, err := refused(err); !refused {
		return false, err
	}
	return race(func(int) error {
		_, err := x.other("-puts").put(ctx, &s3.PutObjectInput{IfNoneMatch: aws.String("*")})
		return err
	})
}

// exclusiveComplete is like exclusivePut, but completes multipart uploads.
func (x *sample) exclusiveComplete(ctx context.Context) (bool, error) {
	_, err := x.complete(ctx, &s3.CompleteMultipartUploadInput{IfNoneMatch: aws.String("*")})
	if refused, err := refused(err); !refused {
		return false, err
	}
	var uploads [contenders]s3.CompleteMultipartUploadInput
	for i := range uploads {
		uploads[i].IfNoneMatch = aws.String("*")
		if err := x.other("-uploads").uploadWhole(ctx, &uploads[i]); err != nil {
			return false, err
		}
	}
	return race(func(i int) error {
		_, err := x.CompleteMultipartUpload(ctx, &uploads[i])
		return err
	})
}

// race sends requests at the same time, and reports whether at most one succeeds. It returns an error if one got no
// response.
func race(request func(i int) error) (bool, error) {
	var (
		mu     sync.Mutex
		stored int
		failed error
		all    sync.WaitGroup
	)
	for i := range contenders {
		all.Go(func() {
			err := panics.Catch(func() error { return request(i) })
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				stored++
			} else if networkError(err) != nil {
				failed = err
			}
		})
	}
	all.Wait()
	return stored <= 1 && failed == nil, failed
}

// unquotedETags reports whether the server rejects the correct ETag in quotes and accepts it without them.
func (x *sample) unquotedETags(ctx context.Context) (bool, error) {
	for _, unquoted := range []bool{false, true} {
		same := *x
		same.profile = &driver.Profile{UnquotedETags: unquoted}
		works, err := same.conditionalPut(ctx)
		x.etag = same.etag
		if works || networkError(err) != nil {
			return works && unquoted, err
		}
	}
	return false, nil
}

func (x *sample) conditionalPut(ctx context.Context) (bool, error) {
	return x.conditional(func(etag *string) error {
		_, err := x.put(ctx, &s3.PutObjectInput{IfMatch: etag})
		return err
	})
}

func (x *sample) conditionalComplete(ctx context.Context) (bool, error) {
	return x.conditional(func(etag *string) error {
		_, err := x.complete(ctx, &s3.CompleteMultipartUploadInput{IfMatch: etag})
		return err
	})
}

// conditionalCopy overwrites a copy on the condition that the copy still has its ETag.
func (x *sample) conditionalCopy(ctx context.Context) (bool, error) {
	copied := x.other("-copy")
	if err := copied.putAgain(ctx); err != nil {
		return false, err
	}
	return copied.conditional(func(etag *string) error {
		_, err := x.CopyObject(ctx, &s3.CopyObjectInput{
			Bucket: &x.bucket, Key: &copied.key, CopySource: copySource(x.bucket, x.key), IfMatch: etag,
		})
		return err
	})
}

// uncheckedSources reports whether the server rejects the correct ETag of a source from a multipart upload, or accepts
// a wrong one.
func (x *sample) uncheckedSources(ctx context.Context) (bool, error) {
	if _, err := x.complete(ctx, &s3.CompleteMultipartUploadInput{}); err != nil {
		return false, err
	}
	copied, err := x.copyPart(ctx, x.ifMatch(wrongETag))
	if refused, err := refused(err); copied || !refused {
		return copied, err
	}
	_, err = x.copyPart(ctx, x.ifMatch(x.etag))
	return refused(err)
}

// conditionalDelete deletes an object that a multipart upload stored, because Swift rejects its correct ETag.
func (x *sample) conditionalDelete(ctx context.Context) (bool, error) {
	return x.conditional(func(etag *string) error {
		_, err := x.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &x.bucket, Key: &x.key, IfMatch: etag})
		return err
	})
}

func (x *sample) conditionalBatchDelete(ctx context.Context) (bool, error) {
	if err := x.putAgain(ctx); err != nil {
		return false, err
	}
	if deleted, err := x.deleteAll(ctx, aws.String(wrongETag)); err != nil || deleted {
		return false, err
	}
	return x.deleteAll(ctx, x.ifMatch(x.etag))
}
