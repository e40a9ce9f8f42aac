package s3api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver/drivertest/s3spy"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/profile"
)

// requests has a request of each kind.
var requests = []struct {
	name string
	long bool // part of a multipart upload
	make func(ctx context.Context, b *s3api.Bucket) error
}{
	{"head", false, func(ctx context.Context, b *s3api.Bucket) error { _, _, err := b.Head(ctx, "key"); return err }},
	{"list", false, func(ctx context.Context, b *s3api.Bucket) error {
		_, err := b.List(ctx, s3api.Listing{})
		return err
	}},
	{"delete", false, func(ctx context.Context, b *s3api.Bucket) error { return b.Delete(ctx, "key") }},
	{"delete-version", false, func(ctx context.Context, b *s3api.Bucket) error {
		return b.DeleteVersion(ctx, s3api.Version{Bucket: b, Key: "key", ETag: `"etag"`})
	}},
	{"put", false, func(ctx context.Context, b *s3api.Bucket) error {
		_, err := b.Put(ctx, "key", &s3object.Attributes{}, s3api.Condition{}, strings.NewReader("content"),
			s3api.Sums{})
		return err
	}},
	{"look-for-directory", false, func(ctx context.Context, b *s3api.Bucket) error {
		_, err := b.List(ctx, s3api.Listing{Limit: 1})
		return err
	}},
	{"copy", false, func(ctx context.Context, b *s3api.Bucket) error {
		_, err := b.Copy(
			ctx, s3api.Version{Bucket: b, Key: "key", Size: 1, ETag: `"etag"`}, &s3object.Attributes{}, "copy",
			s3api.Condition{})
		return err
	}},
	{"create", true, func(ctx context.Context, b *s3api.Bucket) error {
		_, err := b.CreateUpload(ctx, "key", "", &s3object.Attributes{}, s3api.PartChecksums{})
		return err
	}},
	{"copy-part", true, func(ctx context.Context, b *s3api.Bucket) error {
		_, err := b.CopyPart(
			ctx, s3api.Upload{Key: "key", ID: "id"}, 1, s3api.Version{Bucket: b, Key: "key", Size: 1, ETag: `"etag"`},
			0, 1)
		return err
	}},
	{"complete", true, func(ctx context.Context, b *s3api.Bucket) error {
		_, err := b.CompleteUpload(
			ctx, s3api.Upload{Key: "key", ID: "id"}, []*s3api.Part{{Number: 1, Size: 1, ETag: `"etag"`}},
			s3api.Condition{}, always)
		return err
	}},
	{"part", true, func(ctx context.Context, b *s3api.Bucket) error {
		_, err := b.UploadPart(ctx, s3api.Upload{Key: "key", ID: "id"}, 1, strings.NewReader("content"), nil)
		return err
	}},
}

// always reports that this session still owns the upload.
func always(context.Context) bool { return true }

// newBucket returns a bucket whose requests all return the error of respond.
func newBucket(respond func(ctx context.Context, in any) error) *s3api.Bucket {
	p, _ := profile.Named("aws")
	client := s3spy.Intercept(
		struct{ s3api.Client }{}, func(ctx context.Context, in any, _ func() (any, error)) error {
			return respond(ctx, in)
		})
	return s3api.NewBucket(client, "bucket", p, &s3api.Stats{}, time.Minute)
}

// TestSilentS3 lets S3 accept each request and never respond. A command must fail before its client gives up, and a
// part must get several attempts.
func TestSilentS3(t *testing.T) {
	for _, request := range requests {
		t.Run(request.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				b := newBucket(func(ctx context.Context, _ any) error {
					attempts++
					<-ctx.Done()
					return ctx.Err()
				})
				begin := time.Now()
				err := request.make(t.Context(), b)
				took, most := time.Since(begin), 90*time.Second
				if request.long {
					most = 10 * time.Minute
				}
				if !errors.Is(err, syscall.EAGAIN) || took > most || attempts < 2 {
					t.Errorf("%v after %v and %d attempts, want EAGAIN within %v", err, took, attempts, most)
				}
			})
		})
	}
}

// TestRefusedForAWhile lets S3 refuse each request for some time and then perform it.
func TestRefusedForAWhile(t *testing.T) {
	const final = "final error"
	for _, request := range requests {
		t.Run(request.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, window := time.Now(), 20*time.Second
				if request.long {
					window = 4 * time.Minute
				}
				b := newBucket(func(_ context.Context, in any) error {
					if put, ok := in.(*s3.PutObjectInput); ok && put.Body == nil {
						t.Error("an attempt has no body")
					}
					if time.Since(begin) < window {
						return responseError(http.StatusServiceUnavailable, "SlowDown")
					}
					return responseError(http.StatusTeapot, final)
				})
				err := request.make(t.Context(), b)
				if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != final {
					t.Errorf("%v after %v, want the final error after %v", err, time.Since(begin), window)
				}
			})
		})
	}
}

// TestAttempts limits the number of attempts.
func TestAttempts(t *testing.T) {
	for _, request := range requests {
		t.Run(request.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				b := newBucket(func(context.Context, any) error {
					attempts++
					return responseError(http.StatusTooManyRequests, "TooManyRequests")
				})
				err := request.make(s3api.WithRetries(t.Context(), s3api.Retries{Attempts: 3}), b)
				if !errors.Is(err, syscall.EAGAIN) || attempts != 3 {
					t.Errorf("%v after %d attempts, want EAGAIN after 3", err, attempts)
				}
			})
		})
	}
}

func responseError(status int, code string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: "made by the test"},
	}
}
