package config

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Objects is how a tenant's new objects are stored. What is absent is the bucket's choice.
type Objects struct {
	// Media types by the end of the name in lower case, like `.dwg`.
	ContentTypes map[string]string `yaml:"content_types" default:"none"`
	// Cache-Control of new files.
	CacheControl string `yaml:"cache_control" default:"none"`
	// Storage class of new files, like `STANDARD_IA`.
	StorageClass string `yaml:"storage_class" default:"the bucket's"`
	// Canned access control list of everything that is stored.
	ACL ACL `yaml:"acl" default:"the bucket's"`
	// Tags of new files and directories, up to 10.
	Tags map[string]string `yaml:"tags" default:"none"`
	// Encryption of new objects: `s3` (SSE-S3), `kms` (SSE-KMS) or `customer` (SSE-C, with `customer_key`).
	Encryption Encryption `yaml:"encryption" default:"the bucket's"`
	// ID, ARN or alias of the key, for `encryption: kms`.
	KMSKeyID string `yaml:"kms_key_id" default:"AWS's own"`
	// Base64 of 32 random bytes, for `encryption: customer`. Without it objects cannot be read.
	CustomerKey value.Secret `yaml:"customer_key" default:"none"`
	// Checksum that S3 keeps of new files.
	Checksum ChecksumAlgorithm `yaml:"checksum" default:"the SDK's"`
	// Times that listings show: `stored`, or `set` for those of MFMT and of directories, at the price of a request
	// for each entry.
	ListingTimes ListingTimes `yaml:"listing_times" default:"stored"`
}

// Key is the customer's, nil without.
func (o *Objects) Key() []byte {
	key, err := base64.StdEncoding.DecodeString(o.CustomerKey.Reveal())
	if err != nil || len(key) == 0 {
		return nil
	}
	return key
}

// maxObjectTags is a limit of S3: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html
const maxObjectTags = 10

const customerKeySize = 32 // bytes, for AES-256

// check reports what is wrong with the values in the section that p leads to, but for those of the encryption.
func (o *Objects) check(v *validator, p yamlconf.Path) {
	for ending, contentType := range o.ContentTypes {
		for _, broken := range value.ContentTypeProblems(ending, contentType) {
			v.report(p.Child("content_types").Child(ending), "%s", broken)
		}
	}
	if strings.ContainsFunc(o.CacheControl, func(r rune) bool { return r < ' ' || r > '~' }) {
		v.report(p.Child("cache_control"), "%q is not a value of Cache-Control: write ASCII only", o.CacheControl)
	}
	if o.StorageClass != "" && !regexp.MustCompile(`^[A-Z0-9_]*$`).MatchString(o.StorageClass) {
		v.report(p.Child("storage_class"), "%q is not a storage class: write it like STANDARD_IA", o.StorageClass)
	}
	tags := p.Child("tags")
	if len(o.Tags) > maxObjectTags {
		v.report(tags, "there are %d: S3 has room for %d", len(o.Tags), maxObjectTags)
	}
	for key, text := range o.Tags {
		if broken := value.TagProblem(key, text); broken != "" {
			v.report(tags.Child(key), "%s", broken)
		}
	}
}

// checkEncryption reports what is wrong with the encryption of objects at these S3 servers, to which users may get
// links (presign) or not.
func (o *Objects) checkEncryption(v *validator, p yamlconf.Path, endpoints []string, links bool) {
	key := p.Child("customer_key")
	if o.KMSKeyID != "" && o.Encryption != EncryptionKMS {
		v.report(p.Child("kms_key_id"), "works with encryption: kms only")
	}
	isPlain := func(endpoint string) bool {
		u, err := url.Parse(endpoint)
		return err == nil && u.Scheme == "http"
	}
	switch {
	case o.Encryption != EncryptionCustomer && !o.CustomerKey.Empty():
		v.report(key, "works with encryption: customer only")
	case o.Encryption != EncryptionCustomer:
	case o.CustomerKey.Empty():
		v.report(key,
			"is missing: write the Base64 of %d random bytes (openssl rand -base64 %[1]d) into a file, and "+
				"customer_key_file", customerKeySize)
	case len(o.Key()) != customerKeySize:
		v.report(key, "is not the Base64 of %d bytes", customerKeySize)
	case links:
		v.report(p.Child("encryption"), "the reader of a link cannot decrypt objects whose key only this server has: "+
			"remove presign, or choose another encryption")
	case slices.ContainsFunc(endpoints, isPlain):
		v.report(p.Child("encryption"),
			"S3 takes the key over https only: correct s3.endpoint, or choose another encryption")
	}
}

// An ACL is one of S3's canned access control lists:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html
type ACL string

// Values implements [yamlconf.Enum].
func (ACL) Values() []string {
	return []string{"private", "public-read", "public-read-write", "authenticated-read", "aws-exec-read",
		"bucket-owner-read", "bucket-owner-full-control"}
}

// An Encryption is how S3 encrypts new objects. The zero value leaves it to the bucket.
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
