package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/drivertest/s3spy"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

const bucketName = "bucket"

// A bucket is a bucket on a simulated S3 server. It records the requests of its file system.
type bucket struct {
	*testing.T
	server *s3sim.Server
	client *s3.Client // other software uses this client
	fs     *Fs
	first  map[string]*s3sim.Object // objects in their initial state

	mu       sync.Mutex
	requests []string // without listings
	lists    int
	refused  string // prefix of the listings that fail; empty for none
}

// newBucket returns a bucket with objects on a server with this profile. The content of each object is its key.
func newBucket(t *testing.T, p profile.Profile, keys ...string) *bucket {
	t.Helper()
	b := &bucket{T: t, server: s3sim.New(s3sim.Options{Profile: p}), first: map[string]*s3sim.Object{}}
	b.server.CreateBucket(bucketName)
	b.client = b.server.Client(nil)
	for _, key := range keys {
		b.put(key, key)
	}
	for _, o := range b.server.Objects(bucketName) {
		b.first[o.Key] = o
	}
	var err error
	b.fs, err = New(s3spy.Intercept(b.client, b.record), bucketName, &Options{Profile: p})
	must.OK(t, err)
	return b
}

// put stores an object with the client of other software.
func (b *bucket) put(key, content string) {
	b.Helper()
	if _, err := b.client.PutObject(b.Context(), &s3.PutObjectInput{
		Bucket: aws.String(bucketName), Key: &key, Body: strings.NewReader(content),
	}); err != nil {
		b.Fatal(err)
	}
}

// has reports whether an object exists.
func (b *bucket) has(key string) bool {
	return slices.ContainsFunc(b.server.Objects(bucketName), func(o *s3sim.Object) bool { return o.Key == key })
}

// version returns the initial version of an object as a listing describes it.
func (b *bucket) version(key string) s3api.Version {
	v := s3api.Version{Bucket: b.fs.bucket, Key: key}
	if o := b.first[key]; o != nil {
		v.ETag, v.Size, v.ModTime = o.ETag, o.Content.Size(), o.Modified
	}
	return v
}

// record implements [s3spy.Interceptor].
func (b *bucket) record(_ context.Context, in any, send func() (any, error)) error {
	b.mu.Lock()
	refused := false
	note := func(format string, args ...any) { b.requests = append(b.requests, fmt.Sprintf(format, args...)) }
	switch in := in.(type) {
	case *s3.ListObjectsV2Input:
		b.lists++
		refused = b.refused != "" && aws.ToString(in.Prefix) == b.refused
	case *s3.HeadObjectInput:
		note("look at %s", *in.Key)
	case *s3.DeleteObjectInput:
		condition := ""
		if in.IfMatch != nil {
			condition = " if it is " + b.known(*in.Key, *in.IfMatch)
		}
		note("delete %s%s", *in.Key, condition)
	case *s3.DeleteObjectsInput:
		conditions := 0
		for _, o := range in.Delete.Objects {
			if o.ETag != nil {
				conditions++
			}
		}
		note("delete %d from %s on, %d by ETag", len(in.Delete.Objects), *in.Delete.Objects[0].Key, conditions)
	default:
		note("%T", in)
	}
	b.mu.Unlock()
	if refused {
		return errRefused
	}
	_, err := send()
	return err
}

// known returns "as at first" for the ETag that an object had initially.
func (b *bucket) known(key, etag string) string {
	if o := b.first[key]; o != nil && o.ETag == etag {
		return "as at first"
	}
	return etag
}

// wantRequests compares the requests in any order, because some of them run in parallel.
func (b *bucket) wantRequests(want ...string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.requests)
	slices.Sort(want)
	if !slices.Equal(b.requests, want) {
		b.Errorf("requests are %q, want %q", b.requests, want)
	}
}
