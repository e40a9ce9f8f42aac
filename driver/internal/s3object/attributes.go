// Package s3object says how a file is an S3 object, without a request: by its key, and by its attributes.
//
// A [KeySpace] is the part of a bucket whose keys start with one prefix. Its Key maps pathnames to keys, as no
// other place does, and Directory gives the prefix of a directory, which is the key of its marker too. [Representable]
// says which segments of keys a listing can show. [PercentEncode] writes a key for a URI or a header.
//
// [Attributes] are content type, user metadata, storage class, tags and encryption. [FromHead] reads them from an
// answer to HeadObject, ApplyToPut and its siblings write them into a request, and [Objects] says which ones new
// objects get. Checksums (checksums.go) are those that S3 tells of an object: ETags that are MD5s, and what
// GetObjectAttributes has.
//
// RFC 3629 section 4: what is UTF-8. RFC 3986 section 2: the percent-encoding.
package s3object

import (
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Objects says which attributes a file system gives to new objects. The zero value leaves everything to the bucket.
//
// Copies and renamed files keep what they had, as do files that are appended to. They have the ACL, of which S3
// copies none, and the encryption where the source had none.
type Objects struct {
	// ContentTypes are media types by the ends of names in lower case, such as ".dwg". They go before those that the
	// driver knows.
	ContentTypes map[string]string

	CacheControl string
	StorageClass types.StorageClass
	ACL          types.ObjectCannedACL
	Tags         map[string]string

	// Encryption is with S3's own key or one of KMS, of which KMSKeyID chooses one; it may be empty.
	Encryption types.ServerSideEncryption
	KMSKeyID   string

	// Checksum is the algorithm of the checksum that S3 keeps. Files that are uploaded by parts have one only where
	// it is a CRC: of others S3 would keep the checksum of those of the parts.
	Checksum types.ChecksumAlgorithm

	// ListSetTimes makes listings ask for each entry, several in parallel, to show the modification times that were
	// set, and those of directories.
	ListSetTimes bool
}

// defaultEncryption is the encryption of objects that have none of their own.
func (o *Objects) defaultEncryption() Encryption {
	e := Encryption{Algorithm: o.Encryption}
	if o.KMSKeyID != "" {
		e.KMSKeyID = &o.KMSKeyID
	}
	return e
}

// Attributes are what S3 keeps of an object in addition to its bytes.
type Attributes struct {
	ContentType        *string
	contentEncoding    *string
	contentDisposition *string
	contentLanguage    *string
	cacheControl       *string
	redirect           *string // of a website that is served from the bucket
	Expires            *time.Time
	Metadata           map[string]string
	hidden             bool // the object has metadata that no header can hold, and so no answer
	StorageClass       types.StorageClass
	ACL                types.ObjectCannedACL
	Encryption         Encryption
	checksum           types.ChecksumAlgorithm
	Tagged             bool    // the object has tags, which only another request tells
	Tags               *string // as a header has them: a query (RFC 3986 section 3.4)
}

// An Encryption says with which of the keys that S3 holds it encrypts an object. The zero value leaves it to the
// bucket.
type Encryption struct {
	Algorithm   types.ServerSideEncryption
	KMSKeyID    *string
	bucketKey   *bool // whether the key of the object comes from one of the bucket, which saves requests to KMS
	CustomerKey bool  // whether it is with a key that S3 does not hold (SSE-C)
}

// OfFile are the attributes of a new file.
func (o *Objects) OfFile(name string) Attributes {
	a := o.Common()
	a.ContentType, a.StorageClass, a.checksum = aws.String(mediaTypeOf(name, o.ContentTypes)), o.StorageClass,
		o.Checksum
	if o.CacheControl != "" {
		a.cacheControl = &o.CacheControl
	}
	return a
}

// OfMarker are the attributes of the marker of a directory.
func (o *Objects) OfMarker() Attributes {
	a := o.Common()
	a.ContentType = aws.String(directoryType)
	return a
}

// directoryType is the content type of a marker, by which some clients know one.
const directoryType = "application/x-directory"

// Inherit makes the attributes of an object those of its copy.
func (o *Objects) Inherit(a *Attributes) {
	a.ACL = o.ACL
	if a.Encryption.Algorithm == "" {
		a.Encryption = o.defaultEncryption()
	}
}

// Common are the attributes that policies may ask of every object, a marker or a record too.
func (o *Objects) Common() Attributes {
	a := Attributes{ACL: o.ACL, Encryption: o.defaultEncryption()}
	if len(o.Tags) > 0 {
		a.Tags = TagQuery(maps.All(o.Tags))
	}
	return a
}

// FromHead reads the attributes of an object from an answer to HeadObject. What the driver notes in the metadata for
// itself is not among them.
func FromHead(out *s3.HeadObjectOutput) Attributes {
	a := Attributes{
		ContentType:        out.ContentType,
		contentEncoding:    out.ContentEncoding,
		contentDisposition: out.ContentDisposition,
		contentLanguage:    out.ContentLanguage,
		cacheControl:       out.CacheControl,
		redirect:           out.WebsiteRedirectLocation,
		Metadata:           out.Metadata,
		StorageClass:       out.StorageClass,
		Encryption: Encryption{out.ServerSideEncryption, out.SSEKMSKeyId, out.BucketKeyEnabled,
			out.SSECustomerAlgorithm != nil},
		Tagged: aws.ToInt32(out.TagCount) > 0,
	}
	if expires, err := http.ParseTime(aws.ToString(out.ExpiresString)); err == nil {
		a.Expires = &expires
	}
	if a.Metadata != nil { // what is made of the object is another copy, or none, and another request makes it
		a.Metadata = maps.Clone(a.Metadata)
		delete(a.Metadata, CopyStampKey)
		delete(a.Metadata, WriteKey)
	}
	a.hidden = aws.ToInt32(out.MissingMeta) > 0
	return a
}

// SetMTime sets the modification time.
func (a *Attributes) SetMTime(t time.Time) { a.SetMetadata(MTimeKey, formatMTime(t)) }

// RemoveMTime drops the modification time that was set, because it is of other bytes.
func (a *Attributes) RemoveMTime() {
	a.Metadata = maps.Clone(a.Metadata)
	delete(a.Metadata, MTimeKey)
}

// SetMetadata sets a value of the user metadata.
func (a *Attributes) SetMetadata(key, value string) {
	a.Metadata = maps.Clone(a.Metadata)
	if a.Metadata == nil {
		a.Metadata = map[string]string{}
	}
	a.Metadata[key], a.hidden = value, false
}

// ApplyToPut sets the attributes in a request.
func (a *Attributes) ApplyToPut(in *s3.PutObjectInput) {
	in.ChecksumAlgorithm = a.checksum
	in.ContentType, in.ContentEncoding = a.ContentType, a.contentEncoding
	in.ContentDisposition, in.ContentLanguage = a.contentDisposition, a.contentLanguage
	in.CacheControl, in.WebsiteRedirectLocation, in.Expires = a.cacheControl, a.redirect, a.Expires
	in.Metadata, in.StorageClass, in.Tagging, in.ACL = a.Metadata, a.StorageClass, a.Tags, a.ACL
	in.ServerSideEncryption, in.SSEKMSKeyId, in.BucketKeyEnabled = a.Encryption.Algorithm, a.Encryption.KMSKeyID,
		a.Encryption.bucketKey
}

// ApplyToUpload sets the attributes in a request.
func (a *Attributes) ApplyToUpload(in *s3.CreateMultipartUploadInput) {
	switch a.checksum {
	case types.ChecksumAlgorithmCrc32, types.ChecksumAlgorithmCrc32c, types.ChecksumAlgorithmCrc64nvme:
		in.ChecksumAlgorithm, in.ChecksumType = a.checksum, types.ChecksumTypeFullObject
	}
	in.ContentType, in.ContentEncoding = a.ContentType, a.contentEncoding
	in.ContentDisposition, in.ContentLanguage = a.contentDisposition, a.contentLanguage
	in.CacheControl, in.WebsiteRedirectLocation, in.Expires = a.cacheControl, a.redirect, a.Expires
	in.Metadata, in.StorageClass, in.Tagging, in.ACL = a.Metadata, a.StorageClass, a.Tags, a.ACL
	in.ServerSideEncryption, in.SSEKMSKeyId, in.BucketKeyEnabled = a.Encryption.Algorithm, a.Encryption.KMSKeyID,
		a.Encryption.bucketKey
}

// ApplyToCopy asks for these attributes in place of those of the object that is copied. Its tags go along. Metadata
// that cannot be read go along where they need no change.
func (a *Attributes) ApplyToCopy(in *s3.CopyObjectInput) {
	in.StorageClass, in.WebsiteRedirectLocation, in.ACL = a.StorageClass, a.redirect, a.ACL
	in.ServerSideEncryption, in.SSEKMSKeyId, in.BucketKeyEnabled = a.Encryption.Algorithm, a.Encryption.KMSKeyID,
		a.Encryption.bucketKey
	if a.hidden {
		return
	}
	in.MetadataDirective = types.MetadataDirectiveReplace
	in.ContentType, in.ContentEncoding = a.ContentType, a.contentEncoding
	in.ContentDisposition, in.ContentLanguage = a.contentDisposition, a.contentLanguage
	in.CacheControl, in.Expires, in.Metadata = a.cacheControl, a.Expires, a.Metadata
}

// TagQuery writes tags as a header has them.
func TagQuery(tags iter.Seq2[string, string]) *string {
	query := url.Values{}
	for key, value := range tags {
		query.Set(key, value)
	}
	return aws.String(strings.ReplaceAll(query.Encode(), "+", "%20"))
}

// KeepsMD5 tells whether the ETags of objects that are encrypted so are the MD5 of their bytes:
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html
func (e Encryption) KeepsMD5() bool {
	return !e.CustomerKey && (e.Algorithm == "" || e.Algorithm == types.ServerSideEncryptionAes256)
}

// CopyStampKey is the user metadata by which the copy of a file in a directory tells what it is a copy of, where its
// ETag does not. Package s3api makes its value.
const CopyStampKey = "babelftp-copy-of"

// WriteKey is the user metadata that names the request which has made an object. After a lost answer it tells one's
// own object from an equal one of another client.
const WriteKey = "babelftp-write"

// maxMetadata is how many bytes of user metadata S3 takes:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html
const maxMetadata = 2 << 10

// HasRoom tells whether S3 takes user metadata with one value more.
func HasRoom(metadata map[string]string, key, value string) bool {
	bytes := len(key) + len(value)
	for key, value := range metadata {
		bytes += len(key) + len(value)
	}
	return bytes <= maxMetadata
}
