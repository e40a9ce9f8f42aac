// Package clients holds decorators over the S3 client: each is an [s3api.Client] around another one.
//
// [WithCustomerKey] adds the key of SSE-C to requests, and [Limited] bounds how many requests are under way. [Shared]
// makes them in turn with those of other users. [Invalidating] notes in a [WriteLog] which keys were written, so that
// a cache returns nothing older.
package clients

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// writeSlots is how many groups of keys a writeLog tells apart. A write makes sessions ask again for the other files
// of its group too.
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

// Invalidating returns a client that notes in a log which keys it writes, before and after each request: what was
// seen meanwhile may be either version.
func Invalidating(client s3api.Client, log *WriteLog) s3api.Client {
	return Intercept(client, func(_ context.Context, in any, send func() (any, error)) error {
		bucket, keys := written(in)
		note := func() {
			for _, key := range keys {
				log.Add(aws.ToString(bucket), aws.ToString(key))
			}
		}
		note()
		defer note()
		_, err := send()
		return err
	})
}

// written returns the keys of the objects that a request writes, none for a request that leaves objects alone.
func written(in any) (bucket *string, keys []*string) {
	switch in := in.(type) {
	case *s3.PutObjectInput:
		return in.Bucket, []*string{in.Key}
	case *s3.DeleteObjectInput:
		return in.Bucket, []*string{in.Key}
	case *s3.CopyObjectInput:
		return in.Bucket, []*string{in.Key}
	case *s3.CompleteMultipartUploadInput:
		return in.Bucket, []*string{in.Key}
	case *s3.DeleteObjectsInput:
		for _, o := range in.Delete.Objects {
			keys = append(keys, o.Key)
		}
		return in.Bucket, keys
	}
	return nil, nil
}
