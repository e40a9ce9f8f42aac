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

// A locked backend makes each change of an object atomic for readers, like S3. versitygw reads a file and its
// attributes one after the other, by the name of the file. Without the locks, a reader could get the size or the
// metadata of one object with the ETag of the object that replaces it. versitygw also compares the ETag of a file
// before it deletes the file by name, so it could delete a new object that it has just confirmed to another client.
//
// The bodies of PutObject and GetObject hold no lock, because a client may send or read them slowly. Copying within
// the server does hold one. A request that needs several locks acquires them in the order of their index, and before
// the locks of versitygw, so requests cannot deadlock.
type locked struct {
	*posix.Posix
	seed maphash.Seed
	keys [256]sync.RWMutex // by the hash of the object; changes use Lock
}

func lock(backend *posix.Posix) *locked { return &locked{Posix: backend, seed: maphash.MakeSeed()} }

// index returns the index of the lock of an object.
func (l *locked) index(bucket, key string) int {
	return int(maphash.String(l.seed, bucket+"/"+key) % uint64(len(l.keys)))
}

// change locks an object for writing.
func (l *locked) change(bucket, key *string) (unlock func()) {
	object := &l.keys[l.index(*bucket, *key)]
	object.Lock()
	return object.Unlock
}

// read locks an object for reading.
func (l *locked) read(bucket, key string) (unlock func()) {
	object := &l.keys[l.index(bucket, key)]
	object.RLock()
	return object.RUnlock
}

// PutObject locks the object after all bytes have arrived. The marker of a directory has no bytes.
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

// CopyObject also locks the source, because versitygw reads its attributes after its bytes.
func (l *locked) CopyObject(ctx context.Context, in s3response.CopyObjectInput) (s3response.CopyObjectOutput, error) {
	bucket, key, _, err := backend.ParseCopySource(*in.CopySource)
	if err != nil {
		return l.Posix.CopyObject(ctx, in) // versitygw reports the error
	}
	from, to := l.index(bucket, key), l.index(*in.Bucket, *in.Key)
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

// UploadPartCopy locks the source, because versitygw reads its size before its bytes.
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
		changed[l.index(*in.Bucket, *object.Key)] = true
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

// GetObject locks the object until the file is open.
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
	return l.ListObjectsParametrized(ctx, in, l.describeListed)
}

func (l *locked) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input) (s3response.ListObjectsV2Result, error) {
	return l.ListObjectsV2Parametrized(ctx, in, l.describeListed)
}

// describeListed returns a function that describes the objects in a listing. It locks each object, so that its
// attributes belong to the same content.
func (l *locked) describeListed(bucket string, fetchOwner bool) backend.GetObjFunc {
	describe := l.FileToObj(bucket, fetchOwner)
	return func(key string, file fs.DirEntry) (s3response.Object, error) {
		defer l.read(bucket, key)()
		return describe(key, file)
	}
}
