// Package s3object describes how a file is stored as an S3 object: its key, its attributes and its checksums. It sends
// no requests.
//
// A [KeySpace] is the part of a bucket whose keys begin with one prefix. Its Key method maps pathnames to keys, and
// Directory returns the prefix of a directory, which is also the key of its marker:
//
//	keys := s3object.KeySpace("inbox/")
//	key, err := keys.Key("/2026/invoice.xml") // "inbox/2026/invoice.xml"
//	prefix := keys.Directory(key)             // "inbox/2026/invoice.xml/"
//
// [Representable] reports which segments of keys can appear in pathnames, and [PercentEncode] encodes a key for a URI
// or a header.
//
// [Attributes] are the content type, user metadata, storage class, tags and encryption of an object. [FromHead] reads
// them from a HeadObject response, ApplyToPut and the other Apply methods write them into a request, and [Objects]
// configures the attributes of new objects. Checksums (checksums.go) come from responses: an ETag that is an MD5, or a
// checksum that S3 stores.
//
// UTF-8 is defined in RFC 3629 section 4, and percent-encoding in RFC 3986 section 2.
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

// Objects configures which attributes a file system gives to new objects. The zero value leaves everything to the
// bucket.
//
// Copies, renamed files and files that are appended to keep their attributes. They get the configured ACL, because S3
// does not copy ACLs, and the configured encryption if the source had none.
type Objects struct {
	// ContentTypes maps lower-case file extensions, such as ".dwg", to media types. They take precedence over the
	// built-in table.
	ContentTypes map[string]string

	CacheControl string
	StorageClass types.StorageClass
	ACL          types.ObjectCannedACL
	Tags         map[string]string

	// Encryption uses S3's own key or a KMS key. KMSKeyID chooses the KMS key; if it is empty, S3 uses the default key.
	Encryption types.ServerSideEncryption
	KMSKeyID   string

	// Checksum is the algorithm of the checksum that S3 stores. Files that are uploaded in parts get one only if it is
	// a CRC, because for other algorithms S3 would store a checksum of the checksums of the parts.
	Checksum types.ChecksumAlgorithm

	// ListSetTimes makes listings send a request for each entry, several in parallel, to show modification times that
	// clients have set and the times of directories.
	ListSetTimes bool
}

// defaultEncryption returns the encryption for objects that were not encrypted yet.
func (o *Objects) defaultEncryption() Encryption {
	e := Encryption{Algorithm: o.Encryption}
	if o.KMSKeyID != "" {
		e.KMSKeyID = &o.KMSKeyID
	}
	return e
}

// Attributes are stored with an object in addition to its data.
type Attributes struct {
	ContentType        *string
	contentEncoding    *string
	contentDisposition *string
	contentLanguage    *string
	cacheControl       *string
	redirect           *string // for websites that are served from the bucket
	Expires            *time.Time
	Metadata           map[string]string
	hidden             bool // the object has metadata that cannot be written in a header, so responses do not show them
	StorageClass       types.StorageClass
	ACL                types.ObjectCannedACL
	Encryption         Encryption
	checksum           types.ChecksumAlgorithm
	Tagged             bool    // the object has tags; reading them takes another request
	Tags               *string // encoded as in the tagging header: as a query (RFC 3986 section 3.4)
	tagsChanged        bool    // a copy gets Tags instead of the tags of its source
	lock               lock
}

// An Encryption says how S3 encrypts an object. The zero value leaves it to the bucket.
type Encryption struct {
	Algorithm   types.ServerSideEncryption
	KMSKeyID    *string
	bucketKey   *bool // whether the key of the object is derived from a key of the bucket, which saves requests to KMS
	CustomerKey bool  // whether the client provides the key (SSE-C)
}

// ForFile returns the attributes for a new file.
func (o *Objects) ForFile(name string) Attributes {
	a := o.Common()
	a.ContentType, a.StorageClass, a.checksum = aws.String(mediaTypeOf(name, o.ContentTypes)), o.StorageClass,
		o.Checksum
	if o.CacheControl != "" {
		a.cacheControl = &o.CacheControl
	}
	return a
}

// ForMarker returns the attributes for the marker of a directory.
func (o *Objects) ForMarker() Attributes {
	a := o.Common()
	a.ContentType = aws.String(directoryType)
	return a
}

// directoryType is the content type of markers, by which some clients recognize them.
const directoryType = "application/x-directory"

// Inherit turns the attributes of an object into the attributes for its copy.
func (o *Objects) Inherit(a *Attributes) {
	a.ACL = o.ACL
	if a.Encryption.Algorithm == "" {
		a.Encryption = o.defaultEncryption()
	}
}

// Common returns the attributes that bucket policies may require for every object, including markers and journal
// records.
func (o *Objects) Common() Attributes {
	a := Attributes{ACL: o.ACL, Encryption: o.defaultEncryption()}
	if len(o.Tags) > 0 {
		a.Tags = TagQuery(maps.All(o.Tags))
	}
	return a
}

// FromHead returns the attributes in a HeadObject response, without the metadata that the driver uses itself.
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
	if a.Metadata != nil { // a copy gets its own stamp and name, or none
		a.Metadata = maps.Clone(a.Metadata)
		delete(a.Metadata, CopyStampKey)
		delete(a.Metadata, WriteKey)
	}
	a.hidden = aws.ToInt32(out.MissingMeta) > 0
	return a
}

// SetMTime sets the modification time.
func (a *Attributes) SetMTime(t time.Time) { a.SetMetadata(MTimeKey, formatMTime(t)) }

// RemoveMTime removes the modification time that a client has set, because the bytes change.
func (a *Attributes) RemoveMTime() {
	a.Metadata = maps.Clone(a.Metadata)
	delete(a.Metadata, MTimeKey)
}

// SetMetadata sets a value in the user metadata.
func (a *Attributes) SetMetadata(key, value string) {
	a.Metadata = maps.Clone(a.Metadata)
	if a.Metadata == nil {
		a.Metadata = map[string]string{}
	}
	a.Metadata[key], a.hidden = value, false
}

// ApplyToPut sets the attributes in a PutObject request.
func (a *Attributes) ApplyToPut(in *s3.PutObjectInput) {
	in.ChecksumAlgorithm = a.checksum
	in.ContentType, in.ContentEncoding = a.ContentType, a.contentEncoding
	in.ContentDisposition, in.ContentLanguage = a.contentDisposition, a.contentLanguage
	in.CacheControl, in.WebsiteRedirectLocation, in.Expires = a.cacheControl, a.redirect, a.Expires
	in.Metadata, in.StorageClass, in.Tagging, in.ACL = a.Metadata, a.StorageClass, a.Tags, a.ACL
	in.ServerSideEncryption, in.SSEKMSKeyId, in.BucketKeyEnabled = a.Encryption.Algorithm, a.Encryption.KMSKeyID,
		a.Encryption.bucketKey
	in.ObjectLockMode, in.ObjectLockRetainUntilDate = a.lock.mode, a.lock.until()
	in.ObjectLockLegalHoldStatus = a.lock.hold()
}

// ApplyToUpload sets the attributes in a CreateMultipartUpload request.
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
	in.ObjectLockMode, in.ObjectLockRetainUntilDate = a.lock.mode, a.lock.until()
	in.ObjectLockLegalHoldStatus = a.lock.hold()
}

// ApplyToCopy sets the attributes in a CopyObject request, where they replace the attributes of the source. S3 copies
// the tags, unless a rule has changed them. If the source has hidden metadata, S3 copies its metadata unchanged.
func (a *Attributes) ApplyToCopy(in *s3.CopyObjectInput) {
	in.StorageClass, in.WebsiteRedirectLocation, in.ACL = a.StorageClass, a.redirect, a.ACL
	in.ServerSideEncryption, in.SSEKMSKeyId, in.BucketKeyEnabled = a.Encryption.Algorithm, a.Encryption.KMSKeyID,
		a.Encryption.bucketKey
	in.ObjectLockMode, in.ObjectLockRetainUntilDate = a.lock.mode, a.lock.until()
	in.ObjectLockLegalHoldStatus = a.lock.hold()
	if a.tagsChanged {
		in.TaggingDirective, in.Tagging = types.TaggingDirectiveReplace, a.Tags
	}
	if a.hidden {
		return
	}
	in.MetadataDirective = types.MetadataDirectiveReplace
	in.ContentType, in.ContentEncoding = a.ContentType, a.contentEncoding
	in.ContentDisposition, in.ContentLanguage = a.contentDisposition, a.contentLanguage
	in.CacheControl, in.Expires, in.Metadata = a.cacheControl, a.Expires, a.Metadata
}

// TagQuery encodes tags for the tagging header.
func TagQuery(tags iter.Seq2[string, string]) *string {
	query := url.Values{}
	for key, value := range tags {
		query.Set(key, value)
	}
	return aws.String(strings.ReplaceAll(query.Encode(), "+", "%20"))
}

// KeepsMD5 reports whether objects with this encryption have the MD5 of their bytes as ETag:
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html
func (e Encryption) KeepsMD5() bool {
	return !e.CustomerKey && (e.Algorithm == "" || e.Algorithm == types.ServerSideEncryptionAes256)
}

// CopyStampKey is the user metadata that identifies the source of a copied file, because an equal ETag does not prove
// where it comes from. See Version.Stamp in package s3api.
const CopyStampKey = "babelftp-copy-of"

// WriteKey is the user metadata with the random name of the request that stored an object. If the response to a write
// is lost, it distinguishes this object from an equal object of another client.
const WriteKey = "babelftp-write"

// maxMetadata is S3's limit for user metadata, in bytes:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html
const maxMetadata = 2 << 10

// HasRoom reports whether one more entry fits into S3's limit for user metadata.
func HasRoom(metadata map[string]string, key, value string) bool {
	bytes := len(key) + len(value)
	for key, value := range metadata {
		bytes += len(key) + len(value)
	}
	return bytes <= maxMetadata
}
