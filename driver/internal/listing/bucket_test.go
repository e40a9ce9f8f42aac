package listing

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

const bucketName = "bucket"

// A bucket is a bucket of a simulated AWS with a round-trip time. In a synctest bubble this takes no real time, so that
// durations can be compared even on a busy machine.
type bucket struct {
	s3api.Client
	server    *s3sim.Server
	roundTrip time.Duration
	pageTime  time.Duration // time that S3 takes for a page
	requests  atomic.Int64

	before func(b *bucket, in *s3.ListObjectsV2Input) error
	after  func(out *s3.ListObjectsV2Output)
}

// newBucket returns a bucket with empty objects.
func newBucket(roundTrip, pageTime time.Duration, keys ...string) *bucket {
	p, _ := profile.Named("aws")
	b := &bucket{server: s3sim.New(s3sim.Options{Profile: p}), roundTrip: roundTrip, pageTime: pageTime}
	b.server.CreateBucket(bucketName)
	b.put(keys...)
	b.Client = b.server.Client(&s3sim.Caller{Fault: s3sim.SlowPages(roundTrip, pageTime)})
	return b
}

// farWay is the round-trip time of a distant server.
const farWay = 40 * time.Millisecond

// far returns a bucket of a distant server.
func far(keys ...string) *bucket { return newBucket(farWay, 5*time.Millisecond, keys...) }

// put stores objects as another S3 client would.
func (b *bucket) put(keys ...string) {
	objects := make([]s3sim.Object, len(keys))
	for i, key := range keys {
		objects[i].Key = key
	}
	b.server.Put(bucketName, objects...)
}

// remove deletes the objects with the chosen keys as another S3 client would.
func (b *bucket) remove(chosen func(key string) bool) {
	for _, o := range b.server.Objects(bucketName) {
		if chosen(o.Key) {
			b.server.Delete(bucketName, o.Key)
		}
	}
}

// ListObjectsV2 implements [s3api.Client].
func (b *bucket) ListObjectsV2(
	ctx context.Context, in *s3.ListObjectsV2Input, opts ...func(*s3.Options),
) (*s3.ListObjectsV2Output, error) {
	b.requests.Add(1)
	if b.before != nil {
		if err := b.before(b, in); err != nil {
			return nil, err
		}
	}
	out, err := b.Client.ListObjectsV2(ctx, in, opts...)
	if err == nil && b.after != nil {
		b.after(out)
	}
	return out, err
}

// numbered returns the keys of count files in the directory "dir".
func numbered(count int) []string {
	keys := make([]string, count)
	for i := range keys {
		keys[i] = fmt.Sprintf("dir/%06d", i)
	}
	return keys
}
