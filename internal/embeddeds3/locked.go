package embeddeds3

import (
	"context"
	"hash/maphash"
	"os"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3response"
)

// A locked backend deletes on a condition (If-Match) as S3 does: nothing comes between the comparison and the deletion. versitygw compares the ETag of
// the file, and then deletes what has the name. So it would delete an object that it has just confirmed to another client.
type locked struct {
	*posix.Posix
	seed maphash.Seed
	keys [256]sync.RWMutex // by the hash of the object; Lock is for deletions
}

func lock(backend *posix.Posix) *locked { return &locked{Posix: backend, seed: maphash.MakeSeed()} }

func (l *locked) of(bucket, key *string) *sync.RWMutex {
	return &l.keys[maphash.String(l.seed, *bucket+"/"+*key)%uint64(len(l.keys))]
}

// PutObject holds the lock from when all bytes have come, because a client may send them slowly.
func (l *locked) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	object, held := l.of(in.Bucket, in.Key), false
	defer func() {
		if held {
			object.RUnlock()
		}
	}()
	return l.PutObjectWithPostFunc(ctx, in, func(*os.File) error {
		object.RLock()
		held = true
		return nil
	})
}

func (l *locked) CopyObject(ctx context.Context, in s3response.CopyObjectInput) (s3response.CopyObjectOutput, error) {
	object := l.of(in.Bucket, in.Key)
	object.RLock()
	defer object.RUnlock()
	return l.Posix.CopyObject(ctx, in)
}

func (l *locked) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput) (s3response.CompleteMultipartUploadResult, string, error) {
	object := l.of(in.Bucket, in.Key)
	object.RLock()
	defer object.RUnlock()
	return l.Posix.CompleteMultipartUpload(ctx, in)
}

func (l *locked) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	if in.IfMatch != nil {
		object := l.of(in.Bucket, in.Key)
		object.Lock()
		defer object.Unlock()
	}
	return l.Posix.DeleteObject(ctx, in)
}
