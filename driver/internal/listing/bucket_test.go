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

// A bucket is one of a simulated AWS that is some way off. In a synctest bubble that takes no real time, so that times
// can be compared on a machine that has other work.
type bucket struct {
	s3api.Client
	server    *s3sim.Server
	roundTrip time.Duration
	pageTime  time.Duration // one page after another
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

// farWay is the round trip to a server that is far away.
const farWay = 40 * time.Millisecond

// far returns a bucket that is far away.
func far(keys ...string) *bucket { return newBucket(farWay, 5*time.Millisecond, keys...) }

// put lets other software store objects.
func (b *bucket) put(keys ...string) {
	objects := make([]s3sim.Object, len(keys))
	for i, key := range keys {
		objects[i].Key = key
	}
	b.server.Put(bucketName, objects...)
}

// remove lets other software delete the objects whose keys are chosen.
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

// numbered returns so many keys of files in the directory "dir".
func numbered(count int) []string {
	keys := make([]string, count)
	for i := range keys {
		keys[i] = fmt.Sprintf("dir/%06d", i)
	}
	return keys
}
