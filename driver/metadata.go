package driver

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// Objects says what a file system stores objects with beside their bytes. The zero value leaves everything to the bucket.
//
// Copies and renamed files keep what they had, as do files that are appended to. They have the ACL, of which S3 copies none, and the
// encryption where the source had none.
type Objects struct {
	// ContentTypes are media types by the ends of names in lower case, such as ".dwg". They go before those that the driver knows.
	ContentTypes map[string]string

	CacheControl string
	StorageClass types.StorageClass
	ACL          types.ObjectCannedACL
	Tags         map[string]string

	// Encryption is with S3's own key or one of KMS, of which KMSKeyID chooses one; it may be empty.
	Encryption types.ServerSideEncryption
	KMSKeyID   string

	// Checksum is the algorithm of the checksum that S3 keeps. Files that are uploaded by parts have one only where it is a CRC: of
	// others S3 would keep the checksum of those of the parts.
	Checksum types.ChecksumAlgorithm

	// ListSetTimes makes listings ask for each file, some at a time, to show the modification times that were set.
	ListSetTimes bool
}

func (o *Objects) encryption() encryption {
	e := encryption{algorithm: o.Encryption}
	if o.KMSKeyID != "" {
		e.kmsKeyID = &o.KMSKeyID
	}
	return e
}

// Attributes are what S3 keeps beside the bytes of an object.
type attributes struct {
	contentType        *string
	contentEncoding    *string
	contentDisposition *string
	contentLanguage    *string
	cacheControl       *string
	redirect           *string // of a website that is served from the bucket
	expires            *time.Time
	metadata           map[string]string
	edited             bool // metadata are not those that the object has
	class              types.StorageClass
	acl                types.ObjectCannedACL
	encryption         encryption
	checksum           types.ChecksumAlgorithm
	tagged             bool    // the object has tags, which only another request tells
	tags               *string // as a header has them: a query (RFC 3986 section 3.4)
}

// An encryption says with which of the keys that S3 holds it encrypts an object. The zero value leaves it to the bucket.
type encryption struct {
	algorithm types.ServerSideEncryption
	kmsKeyID  *string
	bucketKey *bool // whether the key of the object comes from one of the bucket, which saves requests to KMS
	customer  bool  // whether it is with a key that S3 does not hold (SSE-C)
}

// newAttributes are those of a new file.
func (f *Fs) newAttributes(name string) attributes {
	o := &f.opts.Objects
	a := o.common()
	a.contentType, a.class, a.checksum = aws.String(o.contentType(name)), o.StorageClass, o.Checksum
	if o.CacheControl != "" {
		a.cacheControl = &o.CacheControl
	}
	return a
}

// common are the attributes that policies may ask of every object, a marker or a record too.
func (o *Objects) common() attributes {
	a := attributes{acl: o.ACL, encryption: o.encryption()}
	if len(o.Tags) > 0 {
		a.tags = tagQuery(maps.All(o.Tags))
	}
	return a
}

// carry makes the attributes of an object those of its copy.
func (f *Fs) carry(a *attributes) {
	a.acl = f.opts.Objects.ACL
	if a.encryption.algorithm == "" {
		a.encryption = f.opts.Objects.encryption()
	}
}

func attributesOf(out *s3.HeadObjectOutput) attributes {
	a := attributes{
		contentType:        out.ContentType,
		contentEncoding:    out.ContentEncoding,
		contentDisposition: out.ContentDisposition,
		contentLanguage:    out.ContentLanguage,
		cacheControl:       out.CacheControl,
		redirect:           out.WebsiteRedirectLocation,
		metadata:           out.Metadata,
		class:              out.StorageClass,
		encryption:         encryption{out.ServerSideEncryption, out.SSEKMSKeyId, out.BucketKeyEnabled, out.SSECustomerAlgorithm != nil},
		tagged:             aws.ToInt32(out.TagCount) > 0,
	}
	if expires, err := http.ParseTime(aws.ToString(out.ExpiresString)); err == nil {
		a.expires = &expires
	}
	if _, stamped := a.metadata[stampKey]; stamped { // what is made of the object is another copy, or none
		a.metadata, a.edited = maps.Clone(a.metadata), true
		delete(a.metadata, stampKey)
	}
	return a
}

func (a *attributes) put(in *s3.PutObjectInput) {
	in.ChecksumAlgorithm = a.checksum
	in.ContentType, in.ContentEncoding = a.contentType, a.contentEncoding
	in.ContentDisposition, in.ContentLanguage = a.contentDisposition, a.contentLanguage
	in.CacheControl, in.WebsiteRedirectLocation, in.Expires = a.cacheControl, a.redirect, a.expires
	in.Metadata, in.StorageClass, in.Tagging, in.ACL = a.metadata, a.class, a.tags, a.acl
	in.ServerSideEncryption, in.SSEKMSKeyId, in.BucketKeyEnabled = a.encryption.algorithm, a.encryption.kmsKeyID, a.encryption.bucketKey
}

func (a *attributes) create(in *s3.CreateMultipartUploadInput) {
	switch a.checksum {
	case types.ChecksumAlgorithmCrc32, types.ChecksumAlgorithmCrc32c, types.ChecksumAlgorithmCrc64nvme:
		in.ChecksumAlgorithm, in.ChecksumType = a.checksum, types.ChecksumTypeFullObject
	}
	in.ContentType, in.ContentEncoding = a.contentType, a.contentEncoding
	in.ContentDisposition, in.ContentLanguage = a.contentDisposition, a.contentLanguage
	in.CacheControl, in.WebsiteRedirectLocation, in.Expires = a.cacheControl, a.redirect, a.expires
	in.Metadata, in.StorageClass, in.Tagging, in.ACL = a.metadata, a.class, a.tags, a.acl
	in.ServerSideEncryption, in.SSEKMSKeyId, in.BucketKeyEnabled = a.encryption.algorithm, a.encryption.kmsKeyID, a.encryption.bucketKey
}

// copy asks for what S3 does not copy by itself: everything else of these attributes goes along, and so do the tags.
func (a *attributes) copy(in *s3.CopyObjectInput) {
	in.StorageClass, in.WebsiteRedirectLocation, in.ACL = a.class, a.redirect, a.acl
	in.ServerSideEncryption, in.SSEKMSKeyId, in.BucketKeyEnabled = a.encryption.algorithm, a.encryption.kmsKeyID, a.encryption.bucketKey
}

// replace asks for these attributes in place of those of the object that is copied. Its tags go along.
func (a *attributes) replace(in *s3.CopyObjectInput) {
	a.copy(in)
	in.MetadataDirective = types.MetadataDirectiveReplace
	in.ContentType, in.ContentEncoding = a.contentType, a.contentEncoding
	in.ContentDisposition, in.ContentLanguage = a.contentDisposition, a.contentLanguage
	in.CacheControl, in.Expires, in.Metadata = a.cacheControl, a.expires, a.metadata
}

// readTags asks for the tags of an object that has some. What S3 copies as a whole keeps them; what is put together of parts gets those
// that it is given.
func (b *bucket) readTags(ctx context.Context, key string, a *attributes) error {
	if !a.tagged || a.tags != nil {
		return nil
	}
	out, err := b.client.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: &b.name, Key: &key}, repeatable)
	if err != nil {
		return s3errors.FromSDK(err)
	}
	a.tags = tagQuery(func(yield func(string, string) bool) {
		for _, tag := range out.TagSet {
			if !yield(aws.ToString(tag.Key), aws.ToString(tag.Value)) {
				return
			}
		}
	})
	return nil
}

func tagQuery(tags iter.Seq2[string, string]) *string {
	query := url.Values{}
	for key, value := range tags {
		query.Set(key, value)
	}
	return aws.String(strings.ReplaceAll(query.Encode(), "+", "%20"))
}
