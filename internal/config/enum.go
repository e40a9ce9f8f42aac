package config

import (
	"fmt"
	"slices"
	"strings"
)

// An enum is a text that is one of few words, which are its Values.
type enum[E any] interface {
	~string
	Values() []E
}

// setEnum reads one of the words of E into v. what says what it should be.
func setEnum[E enum[E]](v *E, text []byte, what string) error {
	values := (*v).Values()
	if !slices.Contains(values, E(text)) {
		return fmt.Errorf("%q is no %s: write %s", text, what, oneOf(values))
	}
	*v = E(text)
	return nil
}

// oneOf is the words as a text offers them: "a, b or c".
func oneOf[E ~string](values []E) string {
	var words []string
	for _, v := range values {
		words = append(words, string(v))
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// A LogFormat is how a log record is written. The zero value is LogText.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Values are the words of a configuration.
func (LogFormat) Values() []LogFormat { return []LogFormat{LogText, LogJSON} }

// UnmarshalText reads one of Values.
func (f *LogFormat) UnmarshalText(text []byte) error { return setEnum(f, text, "log format") }

// A Permission is what a user may do.
type Permission string

// The permissions.
const (
	List   Permission = "list"   // see what is in a directory
	Read   Permission = "read"   // download
	Write  Permission = "write"  // upload, append, replace a file, set its time
	Delete Permission = "delete" // remove files and directories
	Rename Permission = "rename" // move files and directories
	Mkdir  Permission = "mkdir"  // make directories
)

// AllPermissions is every permission, in the order of the documentation.
func AllPermissions() []Permission { return []Permission{List, Read, Write, Delete, Rename, Mkdir} }

// Values are the words of a configuration.
func (Permission) Values() []Permission { return AllPermissions() }

// UnmarshalText reads one of Values.
func (p *Permission) UnmarshalText(text []byte) error { return setEnum(p, text, "permission") }

// Overwrite is what happens when a file is stored whose name another one has. The zero value stands for what the layer above says.
type Overwrite string

// The modes.
const (
	AllowOverwrite   Overwrite = "allow"   // the file is replaced
	DenyOverwrite    Overwrite = "deny"    // the file stays, and the other is refused
	VersionOverwrite Overwrite = "version" // the file is replaced where the bucket keeps it as an older version, and only there
)

// Values are the words of a configuration.
func (Overwrite) Values() []Overwrite {
	return []Overwrite{AllowOverwrite, DenyOverwrite, VersionOverwrite}
}

// UnmarshalText reads one of Values.
func (o *Overwrite) UnmarshalText(text []byte) error { return setEnum(o, text, "mode of overwriting") }

// UnknownHosts is how HOST with a name that no tenant has is answered. The zero value is RefuseUnknownHosts.
type UnknownHosts string

// The answers.
const (
	RefuseUnknownHosts UnknownHosts = "refuse"
	IgnoreUnknownHosts UnknownHosts = "ignore" // HOST chooses no tenant (RFC 7151, section 3.2)
)

// Values are the words of a configuration.
func (UnknownHosts) Values() []UnknownHosts {
	return []UnknownHosts{RefuseUnknownHosts, IgnoreUnknownHosts}
}

// UnmarshalText reads one of Values.
func (u *UnknownHosts) UnmarshalText(text []byte) error {
	return setEnum(u, text, "answer to unknown hosts")
}

// Resume is what happens to an interrupted upload. The zero value is DiscardBroken.
type Resume string

// The choices.
const (
	DiscardBroken Resume = "discard"
	KeepBroken    Resume = "keep" // for the user who began it, to resume
)

// Values are the words of a configuration.
func (Resume) Values() []Resume { return []Resume{DiscardBroken, KeepBroken} }

// UnmarshalText reads one of Values.
func (r *Resume) UnmarshalText(text []byte) error {
	return setEnum(r, text, "choice for interrupted uploads")
}

// A Profile names what an S3 server can do, see docs/s3-servers.md.
type Profile string

// AutoProfile has the server find out the profile.
const AutoProfile Profile = "auto"

// Profiles are the names that a configuration may have beside AutoProfile.
func Profiles() []Profile {
	return []Profile{"aws", "aws-directory", "minio", "ceph", "r2", "gcs", "versitygw", "strict"}
}

// Values are the words of a configuration.
func (Profile) Values() []Profile { return append([]Profile{AutoProfile}, Profiles()...) }

// UnmarshalText reads one of Values.
func (p *Profile) UnmarshalText(text []byte) error {
	return setEnum(p, text, "profile of an S3 server")
}

// A ChecksumUse is for which requests the AWS SDK computes checksums that S3 does not ask for. The zero value is the SDK's choice.
type ChecksumUse string

// The choices.
const (
	ChecksumsRequired  ChecksumUse = "required"  // for none
	ChecksumsSupported ChecksumUse = "supported" // for all that know them
)

// Values are the words of a configuration.
func (ChecksumUse) Values() []ChecksumUse {
	return []ChecksumUse{ChecksumsRequired, ChecksumsSupported}
}

// UnmarshalText reads one of Values.
func (c *ChecksumUse) UnmarshalText(text []byte) error { return setEnum(c, text, "use of checksums") }

// An ACL is one of S3's canned access control lists: https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html
type ACL string

// Values are the words of a configuration.
func (ACL) Values() []ACL {
	return []ACL{
		"private", "public-read", "public-read-write", "authenticated-read", "aws-exec-read", "bucket-owner-read", "bucket-owner-full-control",
	}
}

// UnmarshalText reads one of Values.
func (a *ACL) UnmarshalText(text []byte) error { return setEnum(a, text, "canned ACL") }

// An Encryption is who has the key that S3 encrypts objects with. The zero value leaves it to the bucket.
type Encryption string

// The encryptions.
const (
	EncryptionS3       Encryption = "s3"       // S3 (SSE-S3)
	EncryptionKMS      Encryption = "kms"      // AWS's key management (SSE-KMS)
	EncryptionCustomer Encryption = "customer" // this server alone (SSE-C)
)

// Values are the words of a configuration.
func (Encryption) Values() []Encryption {
	return []Encryption{EncryptionS3, EncryptionKMS, EncryptionCustomer}
}

// UnmarshalText reads one of Values.
func (e *Encryption) UnmarshalText(text []byte) error { return setEnum(e, text, "encryption") }

// A ChecksumAlgorithm is one of the checksums that S3 keeps, as S3 names it in lower case. The zero value is the SDK's choice.
type ChecksumAlgorithm string

// Values are the words of a configuration.
func (ChecksumAlgorithm) Values() []ChecksumAlgorithm {
	return []ChecksumAlgorithm{"crc32", "crc32c", "crc64nvme", "sha1", "sha256"}
}

// UnmarshalText reads one of Values.
func (c *ChecksumAlgorithm) UnmarshalText(text []byte) error { return setEnum(c, text, "checksum") }

// ListingTimes is which modification times listings show. The zero value is StoredTimes.
type ListingTimes string

// The choices.
const (
	StoredTimes ListingTimes = "stored" // when objects were stored
	SetTimes    ListingTimes = "set"    // those that were set, at the price of a request for each file
)

// Values are the words of a configuration.
func (ListingTimes) Values() []ListingTimes { return []ListingTimes{StoredTimes, SetTimes} }

// UnmarshalText reads one of Values.
func (l *ListingTimes) UnmarshalText(text []byte) error { return setEnum(l, text, "choice of times") }
