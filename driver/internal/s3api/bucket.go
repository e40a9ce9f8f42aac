// Package s3api makes all requests to S3. The methods of a [Bucket] check every answer (ETag, size, range), and give
// every error a kind (package s3error).
//
// [Client] lists the operations of S3 that the driver uses. A [Version] is an object as it was at one time. A
// [Condition] says which version a write may replace. When the answer to a write is lost, the bucket looks at the
// object to find out whether S3 performed it (change.go). The bucket repeats requests itself (retry.go), and the SDK
// repeats none.
//
// An interceptor may stand between a bucket and its client: [Bucket.InTurns] makes requests in turn with those of other
// users, and [Bucket.AsOf] responds from earlier versions. [CustomerKey] adds the key of SSE-C.
//
// Operations: HeadObject, GetObject, PutObject, CopyObject, DeleteObject, DeleteObjects, GetObjectTagging,
// RestoreObject, ListObjectsV2, ListObjectVersions, CreateMultipartUpload, UploadPart, UploadPartCopy, ListParts,
// CompleteMultipartUpload, AbortMultipartUpload.
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

// S3's rules for multipart uploads: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
const (
	MinPartSize = 5 << 20 // of all parts but the last
	MaxPartSize = 5 << 30
	MaxParts    = 10_000
)

// Client is the part of S3 that a file system uses. *s3.Client is one. Others wrap it to count, to measure or to
// inject faults.
type Client interface {
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObjectTagging(context.Context, *s3.GetObjectTaggingInput, ...func(*s3.Options)) (
		*s3.GetObjectTaggingOutput, error)
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

// A Bucket makes requests by a Client, in the terms of the driver: keys, versions, and errors with a kind. Its
// methods check every answer.
type Bucket struct {
	client      Client
	Name        string
	stats       *Stats
	idleTimeout time.Duration // how long S3 may send nothing of an object
	Profile     profile.Profile
	isPast      bool        // see AsOf
	interceptor interceptor // nil for none
}

// NewBucket returns a bucket whose requests report to the statistics of the server.
func NewBucket(
	client Client, name string, p profile.Profile, stats *Stats, idleTimeout time.Duration,
) *Bucket {
	return &Bucket{client: client, Name: name, Profile: p, stats: stats, idleTimeout: idleTimeout}
}

// A Version describes an object as S3 had it at one time.
type Version struct {
	Bucket       *Bucket
	Key          string
	Size         int64 // bytes
	ModTime      time.Time
	ETag         string // see validator
	StorageClass types.StorageClass
	Seen         time.Time // by the clock of this process, before S3 answered

	// Looked says that S3 was asked for the object itself, and not for a listing. Only then ID is that of S3 in a
	// bucket with versions, and Name that of the request that has stored the version. Both may be empty all the same.
	Looked   bool
	ID, Name string
	metadata map[string]string // of the user, with the name
}

// A Condition says which object a key must have, so that S3 performs a write. The zero value always holds.
type Condition struct {
	Absent bool   // there is no object
	Still  bool   // with Absent: S3 has shown that there was none, so a failure means that the key has changed
	ETag   string // the object is still this version

	// Name and ModTime are those of the version, for looks. They are zero where they are not known.
	Name    string
	ModTime time.Time
}

// Unchanged returns the condition that the object is still this version, which S3 was asked for. For a version without
// a key it is the condition that there is still no object.
func (v *Version) Unchanged() Condition {
	if v.Key == "" {
		return Condition{Absent: true, Still: true}
	}
	return Condition{ETag: v.ETag, Name: v.Name, ModTime: v.ModTime}
}

// Identity distinguishes this version from all others of its key that HeadObject describes, also from one with the
// same bytes. It is never empty.
func (v *Version) Identity() string {
	return v.Name + "/" + strings.Trim(v.ETag, `"`) + "/" + strconv.FormatInt(v.ModTime.Unix(), 10)
}

// identifies reports whether a name proves that an object is the version of the condition. Other S3 clients may have
// copied the version with its metadata, and stored that copy under the key later.
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

// allows tells whether the condition holds for an object with this ETag.
func (c Condition) allows(etag string) bool {
	return !c.Absent && (c.ETag == "" || sameETag(c.ETag, etag))
}

// precondition returns the condition for a write, if the server supports it and has an ETag to compare. Otherwise it
// looks whether the condition holds now, and returns the zero value. A change between the look and the write stays
// unnoticed. The error is ESTALE if the condition does not hold.
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

// Failed returns the error of a request with this condition. If the caller wanted no object, whether or not it had
// asked S3 before, and there is one, the error is fs.ErrExist.
func (c Condition) Failed(err error) error {
	if c.Absent && !c.Still && errors.Is(err, syscall.ESTALE) {
		return &s3error.Error{Kind: fs.ErrExist, Cause: err}
	}
	return err
}
