package embeddeds3

import (
	"context"
	"hash/maphash"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3response"
)

// A locked backend changes an object at once for all readers, as S3 does. versitygw reads a file and its attributes
// one after the other, by the name of the file. So without the locks a reader may get the size or the metadata of one
// object, and the ETag of the object that replaces it. versitygw also compares the ETag of a file, and then deletes
// what has the name: an object that it has just confirmed to another client.
//
// The bodies of PutObject and GetObject hold no lock, because a client may send or read them slowly. What the server
// itself copies does. A request that needs several locks takes them in their order, and takes those of versitygw
// later. So no two requests wait for each other.
type locked struct {
	*posix.Posix
	seed maphash.Seed
	keys [256]sync.RWMutex // by the hash of the object; Lock is for changes
}

func lock(backend *posix.Posix) *locked { return &locked{Posix: backend, seed: maphash.MakeSeed()} }

// of is which lock an object has.
func (l *locked) of(bucket, key string) int {
	return int(maphash.String(l.seed, bucket+"/"+key) % uint64(len(l.keys)))
}

// change locks an object for a change.
func (l *locked) change(bucket, key *string) (unlock func()) {
	object := &l.keys[l.of(*bucket, *key)]
	object.Lock()
	return object.Unlock
}

// read locks an object for reading.
func (l *locked) read(bucket, key string) (unlock func()) {
	object := &l.keys[l.of(bucket, key)]
	object.RLock()
	return object.RUnlock
}

// PutObject holds the lock from when all bytes have come. The marker of a directory has none.
func (l *locked) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	if strings.HasSuffix(*in.Key, "/") {
		defer l.change(in.Bucket, in.Key)()
		return l.Posix.PutObject(ctx, in)
	}
	unlock := func() {}
	defer func() { unlock() }()
	return l.PutObjectWithPostFunc(ctx, in, func(*os.File) error {
		unlock = l.change(in.Bucket, in.Key)
		return nil
	})
}

// CopyObject also locks the source, whose attributes versitygw reads after its bytes.
func (l *locked) CopyObject(ctx context.Context, in s3response.CopyObjectInput) (s3response.CopyObjectOutput, error) {
	bucket, key, _, err := backend.ParseCopySource(*in.CopySource)
	if err != nil {
		return l.Posix.CopyObject(ctx, in) // which reports it
	}
	from, to := l.of(bucket, key), l.of(*in.Bucket, *in.Key)
	if from < to {
		l.keys[from].RLock()
	}
	l.keys[to].Lock()
	defer l.keys[to].Unlock()
	if to < from {
		l.keys[from].RLock()
	}
	if from != to {
		defer l.keys[from].RUnlock()
	}
	return l.Posix.CopyObject(ctx, in)
}

// UploadPartCopy locks the source, whose size versitygw reads before its bytes.
func (l *locked) UploadPartCopy(ctx context.Context, in *s3.UploadPartCopyInput) (s3response.CopyPartResult, error) {
	if bucket, key, _, err := backend.ParseCopySource(*in.CopySource); err == nil {
		defer l.read(bucket, key)()
	}
	return l.Posix.UploadPartCopy(ctx, in)
}

func (l *locked) CompleteMultipartUpload(
	ctx context.Context, in *s3.CompleteMultipartUploadInput,
) (s3response.CompleteMultipartUploadResult, string, error) {
	defer l.change(in.Bucket, in.Key)()
	return l.Posix.CompleteMultipartUpload(ctx, in)
}

func (l *locked) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	defer l.change(in.Bucket, in.Key)()
	return l.Posix.DeleteObject(ctx, in)
}

func (l *locked) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput) (s3response.DeleteResult, error) {
	var changed [len(l.keys)]bool
	for _, object := range in.Delete.Objects {
		changed[l.of(*in.Bucket, *object.Key)] = true
	}
	for i := range changed {
		if changed[i] {
			l.keys[i].Lock()
			defer l.keys[i].Unlock()
		}
	}
	return l.Posix.DeleteObjects(ctx, in)
}

func (l *locked) HeadObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	defer l.read(*in.Bucket, *in.Key)()
	return l.Posix.HeadObject(ctx, in)
}

// GetObject holds the lock until the file is open.
func (l *locked) GetObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	defer l.read(*in.Bucket, *in.Key)()
	return l.Posix.GetObject(ctx, in)
}

func (l *locked) GetObjectAttributes(
	ctx context.Context, in *s3.GetObjectAttributesInput,
) (s3response.GetObjectAttributesResponse, error) {
	defer l.read(*in.Bucket, *in.Key)()
	return l.Posix.GetObjectAttributes(ctx, in)
}

func (l *locked) ListObjects(ctx context.Context, in *s3.ListObjectsInput) (s3response.ListObjectsResult, error) {
	return l.ListObjectsParametrized(ctx, in, l.listed)
}

func (l *locked) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input) (s3response.ListObjectsV2Result, error) {
	return l.ListObjectsV2Parametrized(ctx, in, l.listed)
}

// listed describes the objects of a listing, each as it is at one time.
func (l *locked) listed(bucket string, fetchOwner bool) backend.GetObjFunc {
	describe := l.FileToObj(bucket, fetchOwner)
	return func(key string, file fs.DirEntry) (s3response.Object, error) {
		defer l.read(bucket, key)()
		return describe(key, file)
	}
}
