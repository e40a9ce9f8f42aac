package s3api_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A refusingS3 returns errors for HeadObject and GetObject.
type refusingS3 struct {
	s3api.Client
	head, get error
	requested string
}

func (r *refusingS3) HeadObject(
	context.Context, *s3.HeadObjectInput, ...func(*s3.Options),
) (*s3.HeadObjectOutput, error) {
	return &s3.HeadObjectOutput{}, r.head
}

func (r *refusingS3) GetObject(
	_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	r.requested = *in.Bucket + "/" + *in.Key + " " + *in.Range
	if r.get != nil {
		return nil, r.get
	}
	return &s3.GetObjectOutput{Body: http.NoBody}, nil
}

// GetObject distinguishes refused credentials from a file that the user may not read; HeadObject does not. A missing
// file must not cost a second request.
func TestWithReasons(t *testing.T) {
	for name, tc := range map[string]struct {
		head, get, want error
		text            string
		asks            bool
	}{
		"found":   {nil, nil, nil, "", false},
		"missing": {responseError(404, "NotFound"), nil, fs.ErrNotExist, "", false},
		"unknown-key": {responseError(403, "Forbidden"), responseError(403, "InvalidAccessKeyId"), syscall.EAGAIN,
			"InvalidAccessKeyId", true},
		"expired-token": {responseError(400, "BadRequest"), responseError(400, "ExpiredToken"), syscall.EAGAIN,
			"ExpiredToken", true},
		"long-key": {responseError(400, "BadRequest"), responseError(400, "KeyTooLongError"), syscall.ENAMETOOLONG,
			"KeyTooLongError", true},
		"denied": {responseError(403, "Forbidden"), responseError(403, "AccessDenied"), fs.ErrPermission, "Forbidden",
			true},
		"readable-all-the-same": {responseError(403, "Forbidden"), nil, fs.ErrPermission, "Forbidden", true},
		"no-response":           {responseError(403, "Forbidden"), responseError(503, "SlowDown"), syscall.EAGAIN, "SlowDown", true},
	} {
		t.Run(name, func(t *testing.T) {
			bucket, key := "bucket", "key"
			fake := &refusingS3{head: tc.head, get: tc.get}
			out, err := s3api.WithReasons(fake).HeadObject(
				t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
			if err = s3error.FromSDK(err); !errors.Is(err, tc.want) || err != nil &&
				!strings.Contains(err.Error(), tc.text) || err == nil && out == nil {
				t.Errorf("got error %v, want %v for %s", err, tc.want, tc.text)
			}
			if want := map[bool]string{true: "bucket/key bytes=0-0"}[tc.asks]; fake.requested != want {
				t.Errorf("GetObject is requested for %q, want %q", fake.requested, want)
			}
		})
	}
}
