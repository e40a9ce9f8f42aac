package config

import "github.com/babelftp/babelftp/internal/config/yamlconf"

// An ACL is one of S3's canned access control lists:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html
type ACL string

// Values implements [yamlconf.Enum].
func (ACL) Values() []string {
	return []string{"private", "public-read", "public-read-write", "authenticated-read", "aws-exec-read",
		"bucket-owner-read", "bucket-owner-full-control"}
}

// An Encryption is who has the key that S3 encrypts objects with. The zero value leaves it to the bucket.
type Encryption string

// The encryptions.
const (
	EncryptionS3       Encryption = "s3"       // S3 (SSE-S3)
	EncryptionKMS      Encryption = "kms"      // AWS's key management (SSE-KMS)
	EncryptionCustomer Encryption = "customer" // this server alone (SSE-C)
)

// Values implements [yamlconf.Enum].
func (Encryption) Values() []string {
	return yamlconf.EnumValues(EncryptionS3, EncryptionKMS, EncryptionCustomer)
}

// A ChecksumAlgorithm is one of the checksums that S3 keeps, as S3 names it in lower case. The zero value is the
// SDK's choice.
type ChecksumAlgorithm string

// Values implements [yamlconf.Enum].
func (ChecksumAlgorithm) Values() []string {
	return []string{"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}
}

// ListingTimes is which modification times listings show. The zero value is StoredTimes.
type ListingTimes string

// The choices.
const (
	StoredTimes ListingTimes = "stored" // when objects were stored
	SetTimes    ListingTimes = "set"    // those that were set, at the price of a request for each file
)

// Values implements [yamlconf.Enum].
func (ListingTimes) Values() []string { return yamlconf.EnumValues(StoredTimes, SetTimes) }
