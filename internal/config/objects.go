package config

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Objects configures how new objects of a tenant are stored. Settings that are absent are left to the bucket.
type Objects struct {
	// Media types by file name extension in lower case, such as `.dwg`.
	ContentTypes map[string]string `yaml:"content_types" default:"none"`
	// Cache-Control header of new files.
	CacheControl string `yaml:"cache_control" default:"none"`
	// Storage class of new files, such as `STANDARD_IA`.
	StorageClass string `yaml:"storage_class" default:"the bucket's"`
	// Canned ACL of new objects.
	ACL ACL `yaml:"acl" default:"the bucket's"`
	// Tags of new files and directories, up to 10.
	Tags map[string]string `yaml:"tags" default:"none"`
	// Rules that give attributes to files by path and user.
	Rules []ObjectRule `yaml:"rules" default:"none"`
	// Encryption of new objects: `s3` (SSE-S3), `kms` (SSE-KMS) or `customer` (SSE-C, with `customer_key`).
	Encryption Encryption `yaml:"encryption" default:"the bucket's"`
	// ID, ARN or alias of the key for `encryption: kms`.
	KMSKeyID string `yaml:"kms_key_id" default:"the AWS managed key"`
	// Key for `encryption: customer`: 32 random bytes in base64. If it is lost, the objects cannot be read.
	CustomerKey value.Secret `yaml:"customer_key" default:"none"`
	// Checksum algorithm for new files.
	Checksum ChecksumAlgorithm `yaml:"checksum" default:"chosen by the SDK"`
	// Modification times in listings: `stored` shows when objects were stored, `set` also shows times that were set
	// with MFMT and times of directories, but needs a request for each entry.
	ListingTimes ListingTimes `yaml:"listing_times" default:"stored"`
}

// Key returns the key in CustomerKey, or nil.
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

// check validates the section at p, except for the encryption.
func (o *Objects) check(v *validator, p yamlconf.Path) {
	for ending, contentType := range o.ContentTypes {
		for _, broken := range value.ContentTypeProblems(ending, contentType) {
			v.report(p.Child("content_types").Child(ending), "%s", broken)
		}
	}
	checkCacheControl(v, p.Child("cache_control"), o.CacheControl)
	checkStorageClass(v, p.Child("storage_class"), o.StorageClass)
	o.checkRules(v, p.Child("rules"))
	tags := p.Child("tags")
	if len(o.Tags) > maxObjectTags {
		v.report(tags, "has %d tags, but S3 allows at most %d", len(o.Tags), maxObjectTags)
	}
	for key, text := range o.Tags {
		if broken := value.TagProblem(key, text); broken != "" {
			v.report(tags.Child(key), "%s", broken)
		}
	}
}

func checkCacheControl(v *validator, p yamlconf.Path, text string) {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		v.report(p, "%q is not a value of Cache-Control: write ASCII only", text)
	}
}

func checkStorageClass(v *validator, p yamlconf.Path, text string) {
	if text != "" && !regexp.MustCompile(`^[A-Z0-9_]*$`).MatchString(text) {
		v.report(p, "%q is not a storage class: write it like STANDARD_IA", text)
	}
}

// checkEncryption validates the encryption of objects on these S3 servers. links reports whether users can create
// presigned links.
func (o *Objects) checkEncryption(v *validator, p yamlconf.Path, endpoints []string, links bool) {
	key := p.Child("customer_key")
	checkKMSKey(v, p.Child("kms_key_id"), o.KMSKeyID)
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
			"is missing: it is the Base64 of %d random bytes (openssl rand -base64 %[1]d): set customer_key_file", customerKeySize)
	case len(o.Key()) != customerKeySize:
		v.report(key, "is not the Base64 of %d bytes", customerKeySize)
	case links:
		v.report(p.Child("encryption"), "conflicts with presign, because readers of a link do not have the key: "+
			"remove presign, or choose another encryption")
	case slices.ContainsFunc(endpoints, isPlain):
		v.report(p.Child("encryption"),
			"requires https, because the key is sent to S3: correct s3.endpoint, or choose another encryption")
	}
}

// maxKMSKey is the maximum length of a key's ID, ARN or alias:
// https://docs.aws.amazon.com/kms/latest/APIReference/API_Encrypt.html
const maxKMSKey = 2048

// checkKMSKey validates the name of a KMS key, which is sent in a header.
func checkKMSKey(v *validator, p yamlconf.Path, key string) {
	invalid := func(r rune) bool { return r <= ' ' || r > unicode.MaxASCII || r == 0x7f }
	if len(key) > maxKMSKey || strings.ContainsFunc(key, invalid) {
		v.report(p, "is not the ID, ARN or alias of a key: write it like alias/ftp")
	}
}

// An ACL is a canned ACL of S3:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html
type ACL string

// Values implements [yamlconf.Enum].
func (ACL) Values() []string {
	return []string{"private", "public-read", "public-read-write", "authenticated-read", "aws-exec-read",
		"bucket-owner-read", "bucket-owner-full-control"}
}

// An Encryption is the method by which S3 encrypts new objects. The zero value leaves it to the bucket.
type Encryption string

// The encryptions.
const (
	EncryptionS3       Encryption = "s3"       // with keys of S3 (SSE-S3)
	EncryptionKMS      Encryption = "kms"      // with keys of AWS KMS (SSE-KMS)
	EncryptionCustomer Encryption = "customer" // with a key that only this server has (SSE-C)
)

// Values implements [yamlconf.Enum].
func (Encryption) Values() []string {
	return yamlconf.EnumValues(EncryptionS3, EncryptionKMS, EncryptionCustomer)
}

// A ChecksumAlgorithm is a checksum algorithm of S3, in lower case. The zero value leaves it to the SDK.
type ChecksumAlgorithm string

// Values implements [yamlconf.Enum].
func (ChecksumAlgorithm) Values() []string {
	return []string{"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}
}

// ListingTimes controls which modification times listings show. The zero value is StoredTimes.
type ListingTimes string

// The modes.
const (
	StoredTimes ListingTimes = "stored" // when objects were stored
	SetTimes    ListingTimes = "set"    // times that were set, with a request for each entry
)

// Values implements [yamlconf.Enum].
func (ListingTimes) Values() []string { return yamlconf.EnumValues(StoredTimes, SetTimes) }
