// Package clients holds decorators over the S3 client: each is an [s3api.Client] around another one.
//
// [WithCustomerKey] adds the key of SSE-C to requests, and [Limited] bounds how many requests are under way. [Invalidating] notes in a
// [WriteLog] which keys were written, so that a cache returns nothing older.
package clients

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// writeSlots is how many groups of keys a writeLog tells apart. A write makes sessions ask again for the other files of its group too.
const writeSlots = 4096

// A WriteLog knows when keys were written last by this process. It counts writes in place of time.
type WriteLog struct {
	seed maphash.Seed

	mu    sync.Mutex
	count uint64
	last  []uint64 // by a hash of bucket and key; nil before the first write
}

// NewWriteLog returns a log of no writes.
func NewWriteLog() *WriteLog { return &WriteLog{seed: maphash.MakeSeed()} }

// Now is the time of a look that begins.
func (l *WriteLog) Now() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Add says that a key is about to be written, or was.
func (l *WriteLog) Add(bucket, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make([]uint64, writeSlots)
	}
	l.count++
	l.last[l.slot(bucket, key)] = l.count
}

// Since tells whether a key may have been written since some time.
func (l *WriteLog) Since(bucket, key string, at uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last != nil && l.last[l.slot(bucket, key)] > at
}

func (l *WriteLog) slot(bucket, key string) uint64 {
	return maphash.Comparable(l.seed, [...]string{bucket, key}) % writeSlots
}

// A Invalidating is a client that notes everything that is written, before and after: what was seen meanwhile may be either version.
type Invalidating struct {
	s3api.Client
	Log *WriteLog
}

// PutObject implements [Client].
func (c Invalidating) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	defer c.recordWrites(in.Bucket, in.Key)()
	return c.Client.PutObject(ctx, in, opts...)
}

// DeleteObject implements [Client].
func (c Invalidating) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	defer c.recordWrites(in.Bucket, in.Key)()
	return c.Client.DeleteObject(ctx, in, opts...)
}

// DeleteObjects implements [Client].
func (c Invalidating) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput, opts ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	defer c.recordWrites(in.Bucket, keysOf(in.Delete)...)()
	return c.Client.DeleteObjects(ctx, in, opts...)
}

// CopyObject implements [Client].
func (c Invalidating) CopyObject(ctx context.Context, in *s3.CopyObjectInput, opts ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	defer c.recordWrites(in.Bucket, in.Key)()
	return c.Client.CopyObject(ctx, in, opts...)
}

// CompleteMultipartUpload implements [Client].
func (c Invalidating) CompleteMultipartUpload(
	ctx context.Context, in *s3.CompleteMultipartUploadInput, opts ...func(*s3.Options),
) (*s3.CompleteMultipartUploadOutput, error) {
	defer c.recordWrites(in.Bucket, in.Key)()
	return c.Client.CompleteMultipartUpload(ctx, in, opts...)
}

// recordWrites notes that keys are about to be written, and returns what notes it again.
func (c Invalidating) recordWrites(bucket *string, keys ...*string) func() {
	each := func() {
		for _, key := range keys {
			c.Log.Add(aws.ToString(bucket), aws.ToString(key))
		}
	}
	each()
	return each
}

func keysOf(d *types.Delete) []*string {
	keys := make([]*string, len(d.Objects))
	for i := range keys {
		keys[i] = d.Objects[i].Key
	}
	return keys
}
