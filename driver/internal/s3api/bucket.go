// Package s3api sends all requests to S3.
//
// [Client] lists the S3 operations that the driver uses. A [Bucket] wraps a client and speaks the language of the
// driver: keys, versions, conditions, and errors with a kind (package s3error). A [Version] is an object as S3
// described it at some time, and a [Condition] says which version a write may replace.
//
// For example, to replace an object only if no other client has changed it:
//
//	v, attributes, err := bucket.Head(ctx, key)
//	// ...
//	result, err := bucket.Put(ctx, key, &attributes, v.Unchanged(), body, s3api.Sums{})
//	if errors.Is(err, syscall.ESTALE) {
//		// another client was faster
//	}
//
// Every request passes through the same steps. The bucket checks each response (ETag, size, range), because proxies and
// some servers return success without having done anything. It repeats failed requests itself (retry.go); the retries
// of the SDK are switched off. If the response to a write is lost, the bucket sends HeadObject to find out whether S3
// has performed the write (write.go) and repeats it only if that cannot undo the work of another client.
//
// An interceptor may handle the requests of a bucket: [Bucket.InTurns] shares the connections with other users fairly,
// and [Bucket.AsOf] responds from earlier versions. [CustomerKey] adds the key for SSE-C.
//
// Operations: HeadObject, GetObject, PutObject, CopyObject, DeleteObject, DeleteObjects, GetObjectTagging,
// PutObjectTagging, RestoreObject, ListObjectsV2, ListObjectVersions, CreateMultipartUpload, UploadPart,
// UploadPartCopy, ListParts, CompleteMultipartUpload, AbortMultipartUpload.
package s3api

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// S3's limits for multipart uploads: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
const (
	MinPartSize = 5 << 20 // except for the last part
	MaxPartSize = 5 << 30
	MaxParts    = 10_000
)

// Client is the part of the S3 API that the driver uses. *s3.Client implements it. Tests and tools wrap it to count
// requests, measure them or inject faults.
type Client interface {
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObjectTagging(context.Context, *s3.GetObjectTaggingInput, ...func(*s3.Options)) (
		*s3.GetObjectTaggingOutput, error)
	PutObjectTagging(context.Context, *s3.PutObjectTaggingInput, ...func(*s3.Options)) (
		*s3.PutObjectTaggingOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
	CopyObject(context.Context, *s3.CopyObjectInput, ...func(*s3.Options)) (*s3.CopyObjectOutput, error)
	RestoreObject(context.Context, *s3.RestoreObjectInput, ...func(*s3.Options)) (*s3.RestoreObjectOutput, error)
	ListObjectVersions(context.Context, *s3.ListObjectVersionsInput, ...func(*s3.Options)) (
		*s3.ListObjectVersionsOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
	CreateMultipartUpload(context.Context, *s3.CreateMultipartUploadInput, ...func(*s3.Options)) (
		*s3.CreateMultipartUploadOutput, error)
	UploadPart(context.Context, *s3.UploadPartInput, ...func(*s3.Options)) (*s3.UploadPartOutput, error)
	ListParts(context.Context, *s3.ListPartsInput, ...func(*s3.Options)) (*s3.ListPartsOutput, error)
	UploadPartCopy(context.Context, *s3.UploadPartCopyInput, ...func(*s3.Options)) (*s3.UploadPartCopyOutput, error)
	CompleteMultipartUpload(context.Context, *s3.CompleteMultipartUploadInput, ...func(*s3.Options)) (
		*s3.CompleteMultipartUploadOutput, error)
	AbortMultipartUpload(context.Context, *s3.AbortMultipartUploadInput, ...func(*s3.Options)) (
		*s3.AbortMultipartUploadOutput, error)
}

var _ Client = (*s3.Client)(nil)

// A Bucket sends requests for one S3 bucket through a Client. It checks every response and returns errors with a kind.
type Bucket struct {
	client      Client
	Name        string
	stats       *Stats
	idleTimeout time.Duration // how long S3 may send no byte of an object before the request fails
	Profile     profile.Profile
	isPast      bool        // see AsOf
	interceptor interceptor // may be nil
}

// NewBucket returns a bucket that records response times in stats, which all buckets of a server share.
func NewBucket(
	client Client, name string, p profile.Profile, stats *Stats, idleTimeout time.Duration,
) *Bucket {
	return &Bucket{client: client, Name: name, Profile: p, stats: stats, idleTimeout: idleTimeout}
}

// A Version describes an object as S3 returned it at some time.
type Version struct {
	Bucket       *Bucket
	Key          string
	Size         int64 // in bytes
	ModTime      time.Time
	ETag         string // see validator
	StorageClass types.StorageClass
	Seen         time.Time // when the request was sent, by the clock of this process

	// FromHead reports whether the version comes from a HeadObject response and not from a listing. Only then does ID
	// hold the version ID, in a bucket with versioning, and Name the name of the request that stored the version. Both
	// may still be empty.
	FromHead bool
	ID, Name string
	metadata map[string]string // user metadata, including Name
}

// A Condition says which object a key must have for S3 to perform a write. The zero value always holds.
type Condition struct {
	Absent bool // the key must not exist
	// SeenAbsent is set with Absent if S3 has already reported that the key does not exist. If the condition then
	// fails, the key has changed since, and the error is ESTALE instead of fs.ErrExist.
	SeenAbsent bool
	ETag       string // the object must still have this ETag

	// Name and ModTime are taken from the version, to check a condition with HeadObject. They are zero if they are
	// unknown.
	Name    string
	ModTime time.Time
}

// Unchanged returns the condition that the object is still this version, which must come from HeadObject. For a version
// without a key, it returns the condition that the key still does not exist.
func (v *Version) Unchanged() Condition {
	if v.Key == "" {
		return Condition{Absent: true, SeenAbsent: true}
	}
	return Condition{ETag: v.ETag, Name: v.Name, ModTime: v.ModTime}
}

// Identity distinguishes this version from all other versions of its key that HeadObject describes, even from a version
// with the same bytes. It is never empty.
func (v *Version) Identity() string {
	return v.Name + "/" + strings.Trim(v.ETag, `"`) + "/" + strconv.FormatInt(v.ModTime.Unix(), 10)
}

// identifies reports whether the name in the metadata proves that an object is the version of the condition. The ETag
// and the time must match too, because another S3 client may have copied the version with its metadata and stored the
// copy under the same key later.
func (c Condition) identifies(object *s3.HeadObjectOutput) bool {
	return isNamed(object, c.Name) && c.allows(validator(object.ETag, object.ContentLength, object.LastModified)) &&
		(c.ModTime.IsZero() || c.ModTime.Equal(aws.ToTime(object.LastModified)))
}

func (c Condition) ifMatch(p *profile.Profile) *string {
	if c.ETag == "" || isWeak(c.ETag) {
		return nil
	}
	return aws.String(p.ETagHeader(c.ETag))
}

func (c Condition) ifNoneMatch() *string {
	if !c.Absent {
		return nil
	}
	return aws.String("*")
}

// allows reports whether the condition holds for an object with this ETag.
func (c Condition) allows(etag string) bool {
	return !c.Absent && (c.ETag == "" || sameETag(c.ETag, etag))
}

// precondition returns the condition to send with a write, if the server supports it and the ETag can be compared.
// Otherwise it checks the condition with HeadObject and returns the zero value. In that case, a change between the
// check and the write goes unnoticed. The error is ESTALE if the condition does not hold.
func (b *Bucket) precondition(ctx context.Context, key string, c Condition, supported bool) (Condition, error) {
	if supported && !isWeak(c.ETag) || c == (Condition{}) {
		return c, nil
	}
	v, _, err := b.Head(ctx, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.ETag = ""
	case err != nil:
		return Condition{}, err
	}
	if !sameETag(v.ETag, c.ETag) || c.Name != "" && v.Name != c.Name {
		return Condition{}, errReplaced
	}
	return Condition{}, nil
}

// Failed converts the error of a request with this condition. If the caller wanted to create a new object and the key
// exists, the error becomes fs.ErrExist.
func (c Condition) Failed(err error) error {
	if c.Absent && !c.SeenAbsent && errors.Is(err, syscall.ESTALE) {
		return &s3error.Error{Kind: fs.ErrExist, Cause: err}
	}
	return err
}
