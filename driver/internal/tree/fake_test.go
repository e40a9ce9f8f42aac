package tree

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/fileinfo"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3fake"
	"github.com/babelftp/babelftp/driver/profile"
)

// A fakeS3 is a bucket that lists, looks and deletes. It records the other requests than lists.
type fakeS3 struct {
	*s3fake.Bucket

	mu       sync.Mutex
	etags    map[string]string // by key
	requests []string
}

// newFakeS3 returns a bucket with objects, each of whose ETags is that of its key.
func newFakeS3(keys ...string) *fakeS3 {
	f := &fakeS3{etags: map[string]string{}}
	for _, key := range keys {
		f.etags[key] = etagOf(key)
	}
	keys = slices.Clone(keys)
	slices.Sort(keys)
	f.Bucket = &s3fake.Bucket{Keys: keys, After: func(out *s3.ListObjectsV2Output) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, o := range out.Contents {
			out.Contents[i].ETag, out.Contents[i].Size = aws.String(f.etags[*o.Key]), aws.Int64(1)
		}
	}}
	return f
}

func etagOf(key string) string { return fmt.Sprintf("%q", "etag of "+key) }

// version is an object of a fakeS3 as it was at first.
func version(b *s3api.Bucket, key string) s3api.Version {
	return s3api.Version{Bucket: b, Key: key, ETag: etagOf(key), Size: 1}
}

// tree returns the tree of all objects, on a server with a profile.
func (f *fakeS3) tree(p profile.Profile) *Tree {
	b := s3api.NewBucket(f, "bucket", p, &endpoint.Stats{}, time.Minute)
	return New(Options{Finder: fileinfo.Finder{Bucket: b}})
}

func (f *fakeS3) record(format string, args ...any) {
	f.requests = append(f.requests, fmt.Sprintf(format, args...))
}

// wantRequests compares the requests, which parallel ones may make in any order.
func (f *fakeS3) wantRequests(t *testing.T, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.requests)
	slices.Sort(want)
	if !slices.Equal(f.requests, want) {
		t.Errorf("requests are %q, want %q", f.requests, want)
	}
}

// HeadObject implements [s3api.Client].
func (f *fakeS3) HeadObject(
	_ context.Context, in *s3.HeadObjectInput, _ ...func(*s3.Options),
) (*s3.HeadObjectOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record("look at %s", *in.Key)
	etag, found := f.etags[*in.Key]
	if !found {
		return nil, answer(404, "NotFound")
	}
	return &s3.HeadObjectOutput{ETag: &etag, ContentLength: aws.Int64(1)}, nil
}

// DeleteObject implements [s3api.Client].
func (f *fakeS3) DeleteObject(
	_ context.Context, in *s3.DeleteObjectInput, _ ...func(*s3.Options),
) (*s3.DeleteObjectOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	condition := ""
	if in.IfMatch != nil {
		condition = " if it is " + *in.IfMatch
	}
	f.record("delete %s%s", *in.Key, condition)
	if in.IfMatch != nil && f.etags[*in.Key] != *in.IfMatch {
		return nil, answer(412, "PreconditionFailed")
	}
	delete(f.etags, *in.Key)
	return &s3.DeleteObjectOutput{}, nil
}

// DeleteObjects implements [s3api.Client].
func (f *fakeS3) DeleteObjects(
	_ context.Context, in *s3.DeleteObjectsInput, _ ...func(*s3.Options),
) (*s3.DeleteObjectsOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	conditions := 0
	for _, o := range in.Delete.Objects {
		if o.ETag != nil {
			conditions++
		}
		delete(f.etags, *o.Key)
	}
	f.record("delete %d from %s on, %d by ETag", len(in.Delete.Objects), *in.Delete.Objects[0].Key, conditions)
	return &s3.DeleteObjectsOutput{}, nil
}

// answer is an error that S3 answers with.
func answer(status int, code string) error {
	response := &smithyhttp.Response{Response: &http.Response{StatusCode: status}}
	return &smithyhttp.ResponseError{Response: response, Err: &smithy.GenericAPIError{Code: code}}
}
