package driver

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

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
	class              types.StorageClass
	encryption         encryption
	tagged             bool    // the object has tags, which only another request tells
	tags               *string // as a header has them: a query (RFC 3986 section 3.4)
}

// An encryption says with which of the keys that S3 holds it encrypts an object. The zero value leaves it to the bucket.
type encryption struct {
	algorithm types.ServerSideEncryption
	kmsKeyID  *string
	bucketKey *bool // whether the key of the object comes from one of the bucket, which saves requests to KMS
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
		encryption:         encryption{out.ServerSideEncryption, out.SSEKMSKeyId, out.BucketKeyEnabled},
		tagged:             aws.ToInt32(out.TagCount) > 0,
	}
	if expires, err := http.ParseTime(aws.ToString(out.ExpiresString)); err == nil {
		a.expires = &expires
	}
	return a
}

func (a *attributes) put(in *s3.PutObjectInput) {
	in.ContentType, in.ContentEncoding = a.contentType, a.contentEncoding
	in.ContentDisposition, in.ContentLanguage = a.contentDisposition, a.contentLanguage
	in.CacheControl, in.WebsiteRedirectLocation, in.Expires = a.cacheControl, a.redirect, a.expires
	in.Metadata, in.StorageClass, in.Tagging = a.metadata, a.class, a.tags
	in.ServerSideEncryption, in.SSEKMSKeyId, in.BucketKeyEnabled = a.encryption.algorithm, a.encryption.kmsKeyID, a.encryption.bucketKey
}

func (a *attributes) create(in *s3.CreateMultipartUploadInput) {
	in.ContentType, in.ContentEncoding = a.contentType, a.contentEncoding
	in.ContentDisposition, in.ContentLanguage = a.contentDisposition, a.contentLanguage
	in.CacheControl, in.WebsiteRedirectLocation, in.Expires = a.cacheControl, a.redirect, a.expires
	in.Metadata, in.StorageClass, in.Tagging = a.metadata, a.class, a.tags
	in.ServerSideEncryption, in.SSEKMSKeyId, in.BucketKeyEnabled = a.encryption.algorithm, a.encryption.kmsKeyID, a.encryption.bucketKey
}

// copy asks for what S3 does not copy by itself: everything else of these attributes goes along, and so do the tags.
func (a *attributes) copy(in *s3.CopyObjectInput) {
	in.StorageClass, in.WebsiteRedirectLocation = a.class, a.redirect
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
	out, err := b.client.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: &b.name, Key: &key})
	if err != nil {
		return fromS3(err)
	}
	query := url.Values{}
	for _, tag := range out.TagSet {
		query.Set(aws.ToString(tag.Key), aws.ToString(tag.Value))
	}
	a.tags = aws.String(strings.ReplaceAll(query.Encode(), "+", "%20"))
	return nil
}
