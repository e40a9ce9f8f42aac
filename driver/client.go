package driver

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/profile"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// S3's rules for multipart uploads: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
const (
	minPartSize = 5 << 20 // of all parts but the last
	maxPartSize = 5 << 30
	maxParts    = 10_000
)

// Client is the part of S3 that a file system uses. *s3.Client is one; others wrap it to count, to measure or to break.
type Client interface {
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObjectTagging(context.Context, *s3.GetObjectTaggingInput, ...func(*s3.Options)) (*s3.GetObjectTaggingOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
	CopyObject(context.Context, *s3.CopyObjectInput, ...func(*s3.Options)) (*s3.CopyObjectOutput, error)
	ListObjectVersions(context.Context, *s3.ListObjectVersionsInput, ...func(*s3.Options)) (*s3.ListObjectVersionsOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
	CreateMultipartUpload(context.Context, *s3.CreateMultipartUploadInput, ...func(*s3.Options)) (*s3.CreateMultipartUploadOutput, error)
	UploadPart(context.Context, *s3.UploadPartInput, ...func(*s3.Options)) (*s3.UploadPartOutput, error)
	ListParts(context.Context, *s3.ListPartsInput, ...func(*s3.Options)) (*s3.ListPartsOutput, error)
	UploadPartCopy(context.Context, *s3.UploadPartCopyInput, ...func(*s3.Options)) (*s3.UploadPartCopyOutput, error)
	CompleteMultipartUpload(context.Context, *s3.CompleteMultipartUploadInput, ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error)
	ListMultipartUploads(context.Context, *s3.ListMultipartUploadsInput, ...func(*s3.Options)) (*s3.ListMultipartUploadsOutput, error)
	AbortMultipartUpload(context.Context, *s3.AbortMultipartUploadInput, ...func(*s3.Options)) (*s3.AbortMultipartUploadOutput, error)
}

var _ Client = (*s3.Client)(nil)

// A bucket speaks the driver's terms to a Client: keys and versions in, errors of a kind out. Its methods stand in the files of
// the operations that need them.
type bucket struct {
	client   Client
	name     string
	route    *Route
	patience time.Duration // with S3 that sends nothing
	profile  profile.Profile
}

// A version is what S3 says of an object at one time.
type version struct {
	bucket  *bucket
	key     string
	size    int64 // bytes
	modTime time.Time
	etag    string
	class   types.StorageClass
	id      string // where the bucket keeps versions, empty elsewhere and in listings
}

// A condition must hold of what a key names at the time it is written, or S3 refuses. The zero value always holds.
type condition struct {
	absent bool   // there is no object
	etag   string // the object is still this version
}

func (c condition) ifMatch() *string {
	if c.etag == "" {
		return nil
	}
	return &c.etag
}

func (c condition) ifNoneMatch() *string {
	if !c.absent {
		return nil
	}
	return aws.String("*")
}

// precondition returns what S3 is to check of a condition when it writes an object: all of it where the server can do that. Otherwise it
// looks whether the condition holds now, and what others do between the look and the write stays unnoticed. ESTALE says that it does not hold.
func (b *bucket) precondition(ctx context.Context, key string, c condition, supported bool) (condition, error) {
	if supported || c == (condition{}) {
		return c, nil
	}
	v, _, err := b.head(ctx, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.etag = ""
	case err != nil:
		return condition{}, err
	}
	if v.etag != c.etag {
		return condition{}, s3errors.New(syscall.ESTALE, "object was replaced")
	}
	return condition{}, nil
}

// failed is the error of a request that was made on the condition, of the kind that says what did not hold.
func (c condition) failed(err error) error {
	if c.absent && errors.Is(err, syscall.ESTALE) {
		return &s3errors.Error{Kind: fs.ErrExist, Cause: err}
	}
	return err
}
