package s3client

import (
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Actions of IAM policies.
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
	PutObjectRetention   = "s3:PutObjectRetention"
	PutObjectLegalHold   = "s3:PutObjectLegalHold"
	DeleteObject         = "s3:DeleteObject"
	DeleteObjectVersion  = "s3:DeleteObjectVersion"
	AbortMultipartUpload = "s3:AbortMultipartUpload"
	ListUploadParts      = "s3:ListMultipartUploadParts"
	Decrypt              = "kms:Decrypt"
	GenerateDataKey      = "kms:GenerateDataKey"
	CreateSession        = "s3express:CreateSession" // all requests to a directory bucket
)

// A Permission is an action on a resource, which is an ARN.
type Permission struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`

	// Lookup marks s3:ListBucket for a request that lists nothing. See [driver.Profile.UnprefixedLookups].
	Lookup bool `json:"lookup,omitempty"`
}

func (p Permission) String() string {
	if p.Lookup {
		return p.Action + " on " + p.Resource + " without the condition s3:prefix"
	}
	return p.Action + " on " + p.Resource
}

// A Case is the state of the bucket in which a request needs a permission. The request alone does not show it.
type Case string

// Cases of a Need.
const (
	Always  Case = ""
	Missing Case = "there is no such object" // S3 responds 404 if the client may list the bucket, and 403 otherwise
	Tagged  Case = "the object has tags"
	KMS     Case = "KMS encrypts the object"
)

// A Need is a permission that a request needs if its case applies.
type Need struct {
	Permission
	Case Case
}

// A Region is the region of a bucket, such as "eu-west-3". It may be empty.
type Region string

// partition returns the first part of an ARN.
func (r Region) partition() string {
	switch {
	case strings.HasPrefix(string(r), "cn-"):
		return "arn:aws-cn:"
	case strings.HasPrefix(string(r), "us-gov-"):
		return "arn:aws-us-gov:"
	}
	return "arn:aws:"
}

func (r Region) bucketARN(bucket string) string {
	if isDirectoryBucket(bucket) {
		return r.partition() + "s3express:" + r.orWildcard() + ":*:bucket/" + bucket
	}
	return r.partition() + "s3:::" + bucket
}

func (r Region) objectARN(bucket, key string) string { return r.bucketARN(bucket) + "/" + key }

// orWildcard returns the region for an ARN, or "*" if the region is unknown.
func (r Region) orWildcard() string {
	if r == "" {
		return "*"
	}
	return string(r)
}

// isDirectoryBucket reports whether the name belongs to a bucket of S3 Express One Zone.
func isDirectoryBucket(bucket string) bool { return strings.HasSuffix(bucket, "--x-s3") }

// KeyARN returns the ARN of a KMS key that is configured as an ARN, an ID or an alias. A policy cannot name the key of
// an alias. For an alias, KeyARN returns the ARN of all keys, and the alias for a condition.
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
	return r.partition() + "kms:" + r.orWildcard() + ":*:key/" + id, alias
}

// Needs returns the needs of a request, whose input is a type of the SDK such as [*s3.PutObjectInput]. It returns
// nothing for unknown inputs. The resource of a [KMS] need is empty, because the request does not name the key.
func (r Region) Needs(in any) []Need {
	n := needs{region: r}
	switch in := in.(type) {
	case *s3.HeadBucketInput:
		n.addBucket(Always, in.Bucket, ListBucket)
	case *s3.ListObjectsV2Input:
		n.addBucket(Always, in.Bucket, ListBucket)
	case *s3.ListObjectVersionsInput:
		n.addBucket(Always, in.Bucket, ListBucketVersions)
	case *s3.GetBucketVersioningInput:
		n.addBucket(Always, in.Bucket, GetBucketVersioning)
	case *s3.GetObjectLockConfigurationInput:
		n.addBucket(Always, in.Bucket, GetBucketObjectLock)
	case *s3.HeadObjectInput:
		n.addObject(Always, in.Bucket, in.Key, versionAction(in.VersionId, GetObject, GetObjectVersion))
		n.addRead(in.Bucket)
	case *s3.GetObjectInput:
		n.addObject(Always, in.Bucket, in.Key, versionAction(in.VersionId, GetObject, GetObjectVersion))
		n.addRead(in.Bucket)
	case *s3.GetObjectTaggingInput:
		n.addObject(Always, in.Bucket, in.Key, versionAction(in.VersionId, GetObjectTagging, GetVersionTagging))
		n.addBucket(Missing, in.Bucket, ListBucket)
	case *s3.PutObjectTaggingInput:
		n.addObject(Always, in.Bucket, in.Key, PutObjectTagging)
	case *s3.RestoreObjectInput:
		n.addObject(Always, in.Bucket, in.Key, RestoreObject)
		n.addBucket(Missing, in.Bucket, ListBucket)
	case *s3.PutObjectInput:
		n.addObject(Always, in.Bucket, in.Key, PutObject)
		n.addStore(in.Bucket, in.Key, attributes{
			in.ACL, in.Tagging, in.SSEKMSKeyId, in.ObjectLockMode, in.ObjectLockLegalHoldStatus,
		})
	case *s3.CreateMultipartUploadInput:
		n.addObject(Always, in.Bucket, in.Key, PutObject)
		n.addStore(in.Bucket, in.Key, attributes{
			in.ACL, in.Tagging, in.SSEKMSKeyId, in.ObjectLockMode, in.ObjectLockLegalHoldStatus,
		})
		n.addKey(in.SSEKMSKeyId, Decrypt) // S3 reads the parts when it completes the upload
	case *s3.CopyObjectInput:
		n.addCopy(in.CopySource)
		n.addObject(Always, in.Bucket, in.Key, PutObject)
		n.addStore(in.Bucket, in.Key, attributes{
			in.ACL, in.Tagging, in.SSEKMSKeyId, in.ObjectLockMode, in.ObjectLockLegalHoldStatus,
		})
		if source, key, id := cutSource(in.CopySource); in.TaggingDirective != types.TaggingDirectiveReplace {
			n.addObject(Tagged, &source, &key, versionAction(id, GetObjectTagging, GetVersionTagging))
			n.addObject(Tagged, in.Bucket, in.Key, PutObjectTagging)
		}
	case *s3.UploadPartInput:
		n.addObject(Always, in.Bucket, in.Key, PutObject)
	case *s3.UploadPartCopyInput:
		n.addCopy(in.CopySource)
		n.addObject(Always, in.Bucket, in.Key, PutObject)
	case *s3.CompleteMultipartUploadInput:
		n.addObject(Always, in.Bucket, in.Key, PutObject)
	case *s3.AbortMultipartUploadInput:
		n.addObject(Always, in.Bucket, in.Key, AbortMultipartUpload)
	case *s3.ListPartsInput:
		n.addObject(Always, in.Bucket, in.Key, ListUploadParts)
	case *s3.DeleteObjectInput:
		n.addDelete(in.Bucket, in.Key, in.VersionId)
	case *s3.DeleteObjectsInput:
		for _, o := range in.Delete.Objects {
			n.addDelete(in.Bucket, o.Key, o.VersionId)
		}
	}
	return n.all
}

// needs collects the needs of a request.
type needs struct {
	region Region
	all    []Need
}

func (n *needs) add(c Case, action, resource string) {
	n.all = append(n.all, Need{Permission{Action: action, Resource: resource}, c})
}

func (n *needs) addBucket(c Case, bucket *string, action string) {
	name := aws.ToString(bucket)
	if isDirectoryBucket(name) {
		action = CreateSession
	}
	n.add(c, action, n.region.bucketARN(name))
}

func (n *needs) addObject(c Case, bucket, key *string, action string) {
	if isDirectoryBucket(aws.ToString(bucket)) {
		n.addBucket(c, bucket, CreateSession)
		return
	}
	n.add(c, action, n.region.objectARN(aws.ToString(bucket), aws.ToString(key)))
}

// addKey adds an action on a KMS key. It does nothing if id is empty.
func (n *needs) addKey(id *string, action string) {
	if aws.ToString(id) != "" {
		arn, _ := n.region.KeyARN(*id)
		n.add(Always, action, arn)
	}
}

// attributes holds the attributes of a stored object that need actions of their own.
type attributes struct {
	acl       types.ObjectCannedACL
	tagging   *string
	keyID     *string
	retention types.ObjectLockMode
	legalHold types.ObjectLockLegalHoldStatus
}

func (n *needs) addStore(bucket, key *string, s attributes) {
	if s.acl != "" {
		n.addObject(Always, bucket, key, PutObjectACL)
	}
	if aws.ToString(s.tagging) != "" {
		n.addObject(Always, bucket, key, PutObjectTagging)
	}
	if s.retention != "" {
		n.addObject(Always, bucket, key, PutObjectRetention)
	}
	if s.legalHold != "" {
		n.addObject(Always, bucket, key, PutObjectLegalHold)
	}
	n.addKey(s.keyID, GenerateDataKey)
}

// addRead adds the needs that depend on the object that is read.
func (n *needs) addRead(bucket *string) {
	n.addBucket(Missing, bucket, ListBucket)
	n.add(KMS, Decrypt, "")
}

func (n *needs) addCopy(source *string) {
	bucket, key, id := cutSource(source)
	n.addObject(Always, &bucket, &key, versionAction(id, GetObject, GetObjectVersion))
	n.addRead(&bucket)
}

func (n *needs) addDelete(bucket, key, version *string) {
	n.addObject(Always, bucket, key, versionAction(version, DeleteObject, DeleteObjectVersion))
}

// versionAction returns version if the request names a version ID, and current otherwise.
func versionAction(id *string, current, version string) string {
	if id != nil {
		return version
	}
	return current
}

// cutSource splits the source of a copy, which is percent-encoded (RFC 3986 section 2.1).
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
