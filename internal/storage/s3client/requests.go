package s3client

import (
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// PolicyFor returns the least policy for what the server does in buckets of one account: what their users may do, and
// what it keeps there itself. It sends no request. For an S3 server that is not known yet, the policy allows what any
// profile needs.
func PolicyFor(buckets ...*Bucket) Policy {
	var all []Allowance
	for _, b := range buckets {
		all = append(all, allowances(b)...)
	}
	return NewPolicy(all)
}

func regionOf(b *Bucket) Region { return Region(b.Client.Options().Region) }

// allowances are what the requests for a bucket need.
func allowances(b *Bucket) []Allowance {
	region, prefix, keyID := regionOf(b), Literal(b.Prefix), b.Objects.KMSKeyID
	var all []Allowance
	allow := func(p Permission) {
		a := Allowance{Permission: p}
		if !b.Profile.FullIAM && (p.Action == PutObjectACL || strings.HasPrefix(p.Action, "kms:")) {
			return
		}
		switch p.Action {
		case ListBucket, ListBucketVersions:
			if prefix != "" {
				a.Prefix = prefix + "*"
			}
		case Decrypt, GenerateDataKey:
			_, a.Alias = region.KeyARN(keyID)
		}
		all = append(all, a)
	}
	for _, in := range requests(b, prefix) {
		for _, need := range region.Needs(in) {
			switch {
			case need.Case == Tagged && len(b.Objects.Tags) == 0:
			case need.Case != KMS:
				allow(need.Permission)
			case keyID != "":
				arn, _ := region.KeyARN(keyID)
				allow(Permission{Action: need.Action, Resource: arn})
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
func requests(b *Bucket, prefix string) []any {
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
func removesVersions(b *Bucket) bool {
	return b.Use().Delete && b.KeepsVersions() && !b.Profile.ConditionalDelete
}

// writes are the requests that store objects with the attributes of the tenant. S3 copies files that users append to,
// rename or give another time.
func writes(b *Bucket, key *string) []any {
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
