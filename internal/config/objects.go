package config

import (
	"encoding/base64"
	"mime"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/config/rule"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Objects is how a tenant's new objects are stored. What is absent is the bucket's choice.
type Objects struct {
	// Media types by the end of the name, like `.dwg`, in lower case. They come before those that the server knows.
	ContentTypes map[string]string `yaml:"content_types" default:"none"`
	// Cache-Control of new files.
	CacheControl string `yaml:"cache_control" default:"none"`
	// Storage class of new files, like `STANDARD_IA`.
	StorageClass string `yaml:"storage_class" default:"the bucket's"`
	// Canned access control list of everything that is stored.
	ACL ACL `yaml:"acl" default:"the bucket's"`
	// Tags of new files and directories, up to 10.
	Tags map[string]string `yaml:"tags" default:"none"`
	// Who has the key of the encryption: `s3` (SSE-S3), `kms` (SSE-KMS) or `customer` (SSE-C, with `customer_key`).
	Encryption Encryption `yaml:"encryption" default:"the bucket's"`
	// ID, ARN or alias of the key, for `encryption: kms`.
	KMSKeyID string `yaml:"kms_key_id" default:"AWS's own"`
	// Base64 of 32 random bytes, for `encryption: customer`. Without it the objects of the tenant cannot be read.
	CustomerKey value.Secret `yaml:"customer_key" default:"none"`
	// Checksum that S3 keeps of new files.
	Checksum ChecksumAlgorithm `yaml:"checksum" default:"the SDK's"`
	// Times that listings show: `stored`, or `set` for those of MFMT, at the price of a request for each file.
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

// maxTags is a limit of S3: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html
const maxTags = 10

const customerKeySize = 32 // bytes, for AES-256

func (v *validator) objects(p yamlconf.Path, t *Tenant) {
	o := &t.Objects
	v.contentTypes(p.Child("content_types"), o.ContentTypes)
	if strings.ContainsFunc(o.CacheControl, func(r rune) bool { return r < ' ' || r > '~' }) {
		v.report(p.Child("cache_control"), "%q is no value of Cache-Control: write ASCII only", o.CacheControl)
	}
	if !regexp.MustCompile(`^[A-Z0-9_]*$`).MatchString(o.StorageClass) {
		v.report(p.Child("storage_class"), "%q is no storage class: write it like STANDARD_IA", o.StorageClass)
	}
	v.tags(p.Child("tags"), o.Tags)
	v.encryption(p, t)
}

func (v *validator) contentTypes(p yamlconf.Path, contentTypes map[string]string) {
	for ending, contentType := range contentTypes {
		if len(ending) < 2 || ending[0] != '.' || strings.ContainsAny(ending[1:], "./") || ending != strings.ToLower(ending) {
			v.report(p.Child(ending), "%q is no end of a name: write it like .dwg, in lower case", ending)
		}
		if mediaType, _, err := mime.ParseMediaType(contentType); err != nil || !strings.Contains(mediaType, "/") {
			v.report(p.Child(ending), "%q is no media type: write it like image/vnd.dwg", contentType)
		}
	}
}

func (v *validator) tags(p yamlconf.Path, tags map[string]string) {
	if len(tags) > maxTags {
		v.report(p, "there are %d: S3 has room for %d", len(tags), maxTags)
	}
	for key, value := range tags {
		if broken := rule.Tag(key, value); broken != "" {
			v.report(p.Child(key), "%s", broken)
		}
	}
}

func (v *validator) encryption(p yamlconf.Path, t *Tenant) {
	o, key := &t.Objects, p.Child("customer_key")
	if v.cfg.positions.Broken(p.Child("encryption")) {
		return // and what belongs to it is not known
	}
	if o.KMSKeyID != "" && o.Encryption != EncryptionKMS {
		v.report(p.Child("kms_key_id"), "works with encryption: kms only")
	}
	switch {
	case o.Encryption != EncryptionCustomer && !o.CustomerKey.Empty():
		v.report(key, "works with encryption: customer only")
	case o.Encryption != EncryptionCustomer:
	case o.CustomerKey.Empty():
		v.report(key, "is missing: write the Base64 of %d random bytes (openssl rand -base64 %[1]d) into a file, and customer_key_file", customerKeySize)
	case len(o.Key()) != customerKeySize:
		v.report(key, "is not the Base64 of %d bytes", customerKeySize)
	case t.Presign != 0:
		v.report(p.Child("encryption"), "the reader of a link cannot decrypt objects whose key only this server has: "+
			"remove presign, or choose another encryption")
	default:
		endpoints := []string{v.cfg.StorageOf(t).Endpoint}
		for _, folder := range t.Folders {
			endpoints = append(endpoints, v.cfg.StorageOfFolder(t, folder).Endpoint)
		}
		isPlain := func(endpoint string) bool {
			u, err := url.Parse(endpoint)
			return err == nil && u.Scheme == "http"
		}
		if slices.ContainsFunc(endpoints, isPlain) {
			v.report(p.Child("encryption"), "S3 takes the key over https only: correct s3.endpoint, or choose another encryption")
		}
	}
}
