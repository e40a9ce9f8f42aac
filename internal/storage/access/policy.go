// Package access knows which requests to S3 the server makes for the users of a bucket. [Policy] is the least IAM
// policy that allows them, and [Probe] tries them.
package access

import (
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"

	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// reserved begins the keys, behind the prefix of a bucket, that are for the server itself. No pathname has the segment.
const reserved = ".babelftp/"

// Policy returns the least policy for what the server does in buckets of one account: what their users may do, and
// what it keeps there itself. It sends no request. For an S3 server that is not known yet, the policy allows what any
// profile needs.
func Policy(buckets ...*s3client.Bucket) s3client.Policy {
	var all []s3client.Allowance
	for _, b := range buckets {
		all = append(all, allowances(b)...)
	}
	return s3client.NewPolicy(all)
}

func regionOf(b *s3client.Bucket) s3client.Region { return s3client.Region(b.Client.Options().Region) }

// allowances are what the requests for a bucket need.
func allowances(b *s3client.Bucket) []s3client.Allowance {
	region, prefix, keyID := regionOf(b), s3client.Literal(b.Prefix), b.Objects.KMSKeyID
	var all []s3client.Allowance
	allow := func(p s3client.Permission) {
		a := s3client.Allowance{Permission: p}
		if !b.Profile.FullIAM && (p.Action == s3client.PutObjectACL || strings.HasPrefix(p.Action, "kms:")) {
			return
		}
		switch p.Action {
		case s3client.ListBucket, s3client.ListBucketVersions:
			if prefix != "" {
				a.Prefix = prefix + "*"
			}
		case s3client.Decrypt, s3client.GenerateDataKey:
			_, a.Alias = region.KeyARN(keyID)
		}
		all = append(all, a)
	}
	for _, in := range requests(b, prefix) {
		for _, need := range region.Needs(in) {
			switch {
			case need.Case == s3client.Tagged && len(b.Objects.Tags) == 0:
			case need.Case != s3client.KMS:
				allow(need.Permission)
			case keyID != "":
				arn, _ := region.KeyARN(keyID)
				allow(s3client.Permission{Action: need.Action, Resource: arn})
			}
		}
	}
	return all
}

// asksForVersioning reports whether the server asks whether a bucket keeps versions, because of its profile. One that
// is not known yet may turn out to be such a one.
func asksForVersioning(profile string) bool {
	p, known := driver.ProfileNamed(profile)
	return !known || p.Name == "strict" || p.GhostPrefixes
}

// requests are one of each kind that the server makes for a bucket, with patterns of IAM in place of keys. The prefix
// is that of the keys, as a policy has it.
func requests(b *s3client.Bucket, prefix string) []any {
	name, use := &b.Name, b.Use()
	// the keys of users, and those for the server itself
	users, own := aws.String(prefix+"*"), aws.String(prefix+reserved+"*")
	all := []any{
		&s3.ListObjectsV2Input{Bucket: name},
		&s3.GetObjectInput{Bucket: name, Key: users}, // and HeadObject
	}
	if b.KeepsVersions() || asksForVersioning(b.Profile.Name) {
		all = append(all, &s3.GetBucketVersioningInput{Bucket: name})
	}
	if use.Write {
		all = append(all, &s3.GetObjectLockConfigurationInput{Bucket: name}) // of Probe
		all = append(all, writes(b, users)...)
	}
	if use.Write && b.Resumable() {
		all = append(all, &s3.ListPartsInput{Bucket: name, Key: users})
	}
	switch {
	case use.Delete:
		all = append(all, &s3.DeleteObjectInput{Bucket: name, Key: users}) // and DeleteObjects
	case use.Write || use.Events:
		all = append(all, &s3.DeleteObjectInput{Bucket: name, Key: own})
	}
	if use.Events {
		all = append(all, &s3.PutObjectInput{Bucket: name, Key: own})
	}
	if removesVersions(b) {
		all = append(
			all, &s3.ListObjectVersionsInput{Bucket: name},
			&s3.DeleteObjectInput{Bucket: name, Key: users, VersionId: aws.String("any")})
	}
	return all
}

// removesVersions tells whether the server takes back the delete of an object that another client has replaced.
func removesVersions(b *s3client.Bucket) bool {
	return b.Use().Delete && b.KeepsVersions() && !b.Profile.ConditionalDelete
}

// writes are the requests that store objects with the attributes of the tenant. S3 copies files that users append to,
// rename or give another time.
func writes(b *s3client.Bucket, key *string) []any {
	source := aws.String(b.Name + "/" + url.PathEscape(*key))
	put, upload := &s3.PutObjectInput{Bucket: &b.Name, Key: key},
		&s3.CreateMultipartUploadInput{Bucket: &b.Name, Key: key}
	copied := &s3.CopyObjectInput{Bucket: &b.Name, Key: key, CopySource: source}
	a := b.Objects.OfFile("")
	a.ApplyToPut(put)
	a.ApplyToUpload(upload)
	a.ApplyToCopy(copied)
	all := []any{put, upload, copied, &s3.AbortMultipartUploadInput{Bucket: &b.Name, Key: key}}
	if len(b.Objects.Tags) > 0 {
		all = append(all, &s3.GetObjectTaggingInput{Bucket: &b.Name, Key: key})
	}
	return all
}
