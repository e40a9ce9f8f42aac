package s3client

import (
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// The actions.
const (
	ListBucket           = "s3:ListBucket"
	ListBucketVersions   = "s3:ListBucketVersions"
	GetBucketVersioning  = "s3:GetBucketVersioning"
	GetBucketObjectLock  = "s3:GetBucketObjectLockConfiguration"
	GetObject            = "s3:GetObject"
	GetObjectVersion     = "s3:GetObjectVersion"
	GetObjectTagging     = "s3:GetObjectTagging"
	GetVersionTagging    = "s3:GetObjectVersionTagging"
	RestoreObject        = "s3:RestoreObject"
	PutObject            = "s3:PutObject"
	PutObjectACL         = "s3:PutObjectAcl"
	PutObjectTagging     = "s3:PutObjectTagging"
	DeleteObject         = "s3:DeleteObject"
	DeleteObjectVersion  = "s3:DeleteObjectVersion"
	AbortMultipartUpload = "s3:AbortMultipartUpload"
	ListUploadParts      = "s3:ListMultipartUploadParts"
	Decrypt              = "kms:Decrypt"
	GenerateDataKey      = "kms:GenerateDataKey"
	CreateSession        = "s3express:CreateSession" // all requests to a directory bucket
)

// A Permission is an action on a resource, named by its ARN.
type Permission struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`

	// Lookup says that the action is s3:ListBucket for a request that lists nothing. See
	// [driver.Profile.UnprefixedLookups].
	Lookup bool `json:"lookup,omitempty"`
}

func (p Permission) String() string {
	if p.Lookup {
		return p.Action + " on " + p.Resource + " without the condition s3:prefix"
	}
	return p.Action + " on " + p.Resource
}

// A Case says when a request needs a permission. What decides is in the bucket, and not in the request.
type Case string

// The cases.
const (
	Always  Case = ""
	Missing Case = "there is no such object" // S3 answers 404 to those who may list, and 403 to others
	Tagged  Case = "the object has tags"
	KMS     Case = "KMS encrypts the object"
)

// A Need is a permission that a request needs in a case.
type Need struct {
	Permission
	Case Case
}

// A Region is that of a bucket, such as "eu-west-3". It may be empty.
type Region string

// partition is the first part of an ARN.
func (r Region) partition() string {
	switch {
	case strings.HasPrefix(string(r), "cn-"):
		return "arn:aws-cn:"
	case strings.HasPrefix(string(r), "us-gov-"):
		return "arn:aws-us-gov:"
	}
	return "arn:aws:"
}

// bucketARN names a bucket.
func (r Region) bucketARN(bucket string) string {
	if isDirectoryBucket(bucket) {
		return r.partition() + "s3express:" + r.orAny() + ":*:bucket/" + bucket
	}
	return r.partition() + "s3:::" + bucket
}

// objectARN names the object of a key.
func (r Region) objectARN(bucket, key string) string { return r.bucketARN(bucket) + "/" + key }

// orAny is the region of an ARN that may name any.
func (r Region) orAny() string {
	if r == "" {
		return "*"
	}
	return string(r)
}

// isDirectoryBucket tells buckets of S3 Express One Zone by their names.
func isDirectoryBucket(bucket string) bool { return strings.HasSuffix(bucket, "--x-s3") }

// KeyARN names a key of KMS by what S3 takes: an ARN, an ID or an alias. A policy cannot name the key of an alias, so
// the ARN is that of all keys, and alias is not empty.
func (r Region) KeyARN(id string) (arn, alias string) {
	_, name, isARN := strings.Cut(id, ":alias/")
	switch {
	case isARN:
		alias = "alias/" + name
	case strings.HasPrefix(id, "alias/"):
		alias = id
	case strings.HasPrefix(id, "arn:"):
		return id, ""
	}
	if alias != "" {
		id = "*"
	}
	return r.partition() + "kms:" + r.orAny() + ":*:key/" + id, alias
}

// Needs returns what the request with an input of the SDK needs, such as [*s3.PutObjectInput], and nothing for an
// input that it does not know. The resource of [KMS] is empty, because the request does not name the key.
func (r Region) Needs(in any) []Need {
	n := needs{region: r}
	switch in := in.(type) {
	case *s3.HeadBucketInput:
		n.ofBucket(Always, in.Bucket, ListBucket)
	case *s3.ListObjectsV2Input:
		n.ofBucket(Always, in.Bucket, ListBucket)
	case *s3.ListObjectVersionsInput:
		n.ofBucket(Always, in.Bucket, ListBucketVersions)
	case *s3.GetBucketVersioningInput:
		n.ofBucket(Always, in.Bucket, GetBucketVersioning)
	case *s3.GetObjectLockConfigurationInput:
		n.ofBucket(Always, in.Bucket, GetBucketObjectLock)
	case *s3.HeadObjectInput:
		n.ofObject(Always, in.Bucket, in.Key, ofVersion(in.VersionId, GetObject, GetObjectVersion))
		n.reading(in.Bucket)
	case *s3.GetObjectInput:
		n.ofObject(Always, in.Bucket, in.Key, ofVersion(in.VersionId, GetObject, GetObjectVersion))
		n.reading(in.Bucket)
	case *s3.GetObjectTaggingInput:
		n.ofObject(Always, in.Bucket, in.Key, ofVersion(in.VersionId, GetObjectTagging, GetVersionTagging))
		n.ofBucket(Missing, in.Bucket, ListBucket)
	case *s3.RestoreObjectInput:
		n.ofObject(Always, in.Bucket, in.Key, RestoreObject)
		n.ofBucket(Missing, in.Bucket, ListBucket)
	case *s3.PutObjectInput:
		n.ofObject(Always, in.Bucket, in.Key, PutObject)
		n.storing(in.Bucket, in.Key, stored{in.ACL, in.Tagging, in.SSEKMSKeyId})
	case *s3.CreateMultipartUploadInput:
		n.ofObject(Always, in.Bucket, in.Key, PutObject)
		n.storing(in.Bucket, in.Key, stored{in.ACL, in.Tagging, in.SSEKMSKeyId})
		n.ofKey(in.SSEKMSKeyId, Decrypt) // S3 reads the parts to put them together
	case *s3.CopyObjectInput:
		n.copying(in.CopySource)
		n.ofObject(Always, in.Bucket, in.Key, PutObject)
		n.storing(in.Bucket, in.Key, stored{in.ACL, in.Tagging, in.SSEKMSKeyId})
		if source, key, id := cutSource(in.CopySource); in.TaggingDirective != types.TaggingDirectiveReplace {
			n.ofObject(Tagged, &source, &key, ofVersion(id, GetObjectTagging, GetVersionTagging))
			n.ofObject(Tagged, in.Bucket, in.Key, PutObjectTagging)
		}
	case *s3.UploadPartInput:
		n.ofObject(Always, in.Bucket, in.Key, PutObject)
	case *s3.UploadPartCopyInput:
		n.copying(in.CopySource)
		n.ofObject(Always, in.Bucket, in.Key, PutObject)
	case *s3.CompleteMultipartUploadInput:
		n.ofObject(Always, in.Bucket, in.Key, PutObject)
	case *s3.AbortMultipartUploadInput:
		n.ofObject(Always, in.Bucket, in.Key, AbortMultipartUpload)
	case *s3.ListPartsInput:
		n.ofObject(Always, in.Bucket, in.Key, ListUploadParts)
	case *s3.DeleteObjectInput:
		n.deleting(in.Bucket, in.Key, in.VersionId)
	case *s3.DeleteObjectsInput:
		for _, o := range in.Delete.Objects {
			n.deleting(in.Bucket, o.Key, o.VersionId)
		}
	}
	return n.all
}

// needs collects what a request needs.
type needs struct {
	region Region
	all    []Need
}

func (n *needs) add(c Case, action, resource string) {
	n.all = append(n.all, Need{Permission{Action: action, Resource: resource}, c})
}

func (n *needs) ofBucket(c Case, bucket *string, action string) {
	name := aws.ToString(bucket)
	if isDirectoryBucket(name) {
		action = CreateSession
	}
	n.add(c, action, n.region.bucketARN(name))
}

func (n *needs) ofObject(c Case, bucket, key *string, action string) {
	if isDirectoryBucket(aws.ToString(bucket)) {
		n.ofBucket(c, bucket, CreateSession)
		return
	}
	n.add(c, action, n.region.objectARN(aws.ToString(bucket), aws.ToString(key)))
}

// ofKey adds an action on a key of KMS, and nothing without a key.
func (n *needs) ofKey(id *string, action string) {
	if aws.ToString(id) != "" {
		arn, _ := n.region.KeyARN(*id)
		n.add(Always, action, arn)
	}
}

// stored is what a request gives an object besides its bytes, as far as that takes actions.
type stored struct {
	acl     types.ObjectCannedACL
	tagging *string
	keyID   *string
}

func (n *needs) storing(bucket, key *string, s stored) {
	if s.acl != "" {
		n.ofObject(Always, bucket, key, PutObjectACL)
	}
	if aws.ToString(s.tagging) != "" {
		n.ofObject(Always, bucket, key, PutObjectTagging)
	}
	n.ofKey(s.keyID, GenerateDataKey)
}

// reading adds what depends on the object that is read.
func (n *needs) reading(bucket *string) {
	n.ofBucket(Missing, bucket, ListBucket)
	n.add(KMS, Decrypt, "")
}

func (n *needs) copying(source *string) {
	bucket, key, id := cutSource(source)
	n.ofObject(Always, &bucket, &key, ofVersion(id, GetObject, GetObjectVersion))
	n.reading(&bucket)
}

func (n *needs) deleting(bucket, key, version *string) {
	n.ofObject(Always, bucket, key, ofVersion(version, DeleteObject, DeleteObjectVersion))
}

// ofVersion is the action for the present version, or for the one of an ID.
func ofVersion(id *string, present, version string) string {
	if id != nil {
		return version
	}
	return present
}

// cutSource takes the source of a copy apart, which is in percent-encoding (RFC 3986 section 2.1).
func cutSource(source *string) (bucket, key string, version *string) {
	name, id, found := strings.Cut(aws.ToString(source), "?versionId=")
	if found {
		version = &id
	}
	bucket, key, _ = strings.Cut(name, "/")
	if decoded, err := url.PathUnescape(key); err == nil {
		key = decoded
	}
	return bucket, key, version
}
