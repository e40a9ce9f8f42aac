// Package profile describes what S3 servers differ in: which optional operations each offers, and which rules it
// enforces.
//
// A [Profile] is a struct of facts about one kind of server, almost all of them bools. Code asks for the one fact that
// it depends on, and never for the name of a server:
//
//	p, ok := profile.Named("minio") // false if there is no such profile
//	if p.PartCopy {
//		// use UploadPartCopy
//	} else {
//		// read the object, and upload it again
//	}
//
// A profile comes from the table of this package. The caller finds its name in the configuration, in the endpoint or in
// the headers of a response; package internal/storage/s3client does so for babelftp. For a server that nobody knows,
// use the profile "strict", the zero value but for its name, and set the facts that the server has shown. [Names]
// returns all names.
//
// Methods answer questions that several facts decide: [Profile.Resumes], [Profile.PutsOn], [Profile.MaxParts] and
// [Profile.Parts].
//
// To add a server, add an entry to the table, with the source of each fact here. docs/s3-servers.md shows the table.
//
// # Sources
//
// The facts were tried on servers, except those of these profiles, which come from documents:
//   - aws and aws-directory: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html,
//     https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompletedPart.html,
//     https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-express-differences.html
//   - r2: https://developers.cloudflare.com/r2/api/s3/conditional-operations/,
//     https://developers.cloudflare.com/r2/objects/multipart-objects/,
//     https://developers.cloudflare.com/r2/api/s3/api/
//   - gcs: https://cloud.google.com/storage/docs/xml-api/overview,
//     https://cloud.google.com/storage/docs/xml-api/post-bucket,
//     https://github.com/aws/aws-sdk-go-v2/issues/1816 (the SDK's signature)
//
// The facts of these profiles come from documents and reports. In all else they equal strict:
//   - backblaze: no checksums, https://github.com/vatesfr/xen-orchestra/issues/8358; no conditions,
//     https://github.com/sathinduga/obsidian-s3-sync-and-backup/issues/78; no tags,
//     https://www.backblaze.com/apidocs/s3-copy-object
//   - scaleway: 1,000 parts, https://www.scaleway.com/en/docs/object-storage/api-cli/multipart-uploads/
//   - ovh: without a profile its headers (https://github.com/ovh/public-cloud-roadmap/issues/573) would make it swift
//   - alibaba: https://www.alibabacloud.com/help/en/oss/developer-reference/compatibility-with-amazon-s3, which has no
//     operation for tags
//   - tencent: https://www.tencentcloud.com/document/product/436/7750
//
// minio ignores the conditions of CopyObject, and of DeleteObject (https://github.com/minio/minio/issues/21677). ceph
// is 16.2: conditions of CompleteMultipartUpload came in 2025 (https://github.com/ceph/ceph/pull/64830), checksums with
// Squid. Of seaweedfs, which was run once, UploadPartCopy, parts of different sizes and DeleteObjects are assumed, and
// the IDs of versions are from its source:
// https://github.com/seaweedfs/seaweedfs/blob/master/weed/s3api/s3api_version_id.go.
package profile

import (
	"cmp"
	"strings"
)

// A Profile says what an S3 server can do beyond what all of them can, and which rules it enforces. S3 servers differ
// in nothing else that the driver knows of. The zero value is the strictest server: it offers nothing optional and
// enforces every rule.
//
// docs/s3-servers.md shows the profiles as a table.
type Profile struct {
	// Name is how a configuration names the profile, "aws" for example.
	Name string

	// ConditionalPut is PutObject with If-None-Match and If-Match, ConditionalComplete the same of
	// CompleteMultipartUpload, ConditionalCopy of CopyObject (for the object that is replaced, not for the source),
	// and ConditionalDelete is DeleteObject with If-Match.
	ConditionalPut, ConditionalComplete, ConditionalCopy, ConditionalDelete bool

	// UnquotedETags says that the conditions of requests compare ETags without their quotes. Ceph's PutObject finds a
	// quoted ETag to be another one.
	UnquotedETags bool

	// ConditionalBatchDelete is DeleteObjects with ETags. Servers that do not know these pass over them and delete.
	ConditionalBatchDelete bool

	// ExclusivePut and ExclusiveComplete are PutObject and CompleteMultipartUpload with If-None-Match, also where the
	// server does not know If-Match. Of several requests at the same time one must succeed. Swift looks first, and
	// then several do.
	ExclusivePut, ExclusiveComplete bool

	// UncheckedSources says that the server cannot compare the source of CopyObject and UploadPartCopy with an ETag.
	// Swift refuses the right ETag of an object that was stored by parts, and Ceph passes over
	// x-amz-copy-source-if-match: it knows another name of the header. A client then goes by the time of the source,
	// and looks at the source afterwards.
	UncheckedSources bool

	// InPlaceCopy says that CopyObject of an object onto itself changes its attributes and leaves its bytes alone,
	// even if another client replaces the object meanwhile. Other servers may write the old bytes again.
	InPlaceCopy bool

	// PartCopy is UploadPartCopy.
	PartCopy bool

	// MisreadPartSources says that UploadPartCopy decodes the percent-encoding of x-amz-copy-source twice. A source
	// with a percent sign in its key is another one then, or ends the process of the server. A client reads such an
	// object in place of copying its parts.
	MisreadPartSources bool

	// UnequalParts says that parts of a multipart upload may be of different sizes. Otherwise all but the last must
	// be of one size, and the last must not be larger.
	UnequalParts bool

	// UnframedHeads says that an answer to HeadObject may be followed by the end of a body, which it does not have.
	// The next answer on the connection then begins with these bytes.
	UnframedHeads bool

	// PartLimit limits the parts of an upload, 0 for the 10,000 of AWS. See [Profile.MaxParts].
	PartLimit int64

	// UnendedUploads says that a multipart upload still exists when it was completed. Swift lists its parts, and
	// completes it again. So interrupted uploads are discarded there, see [Profile.Resumes].
	UnendedUploads bool

	// OvertakenAnswers says that PutObject and CopyObject get 200, and no ETag, where the key has what a request has
	// stored that came later. The server has not performed them.
	OvertakenAnswers bool

	// UntoldETags says that an answer to CompleteMultipartUpload has no ETag. A client looks at the object.
	UntoldETags bool

	// LosesTags says that CreateMultipartUpload, and CopyObject with other metadata, take no tags. What they make has
	// none.
	LosesTags bool

	// NoTags says that the server has no tags, and refuses a request with some.
	NoTags bool

	// VirtualHosts says that the server takes the name of a bucket in the host name only, and refuses it in the path.
	VirtualHosts bool

	// Checksums says that the server takes the checksums of requests (x-amz-checksum-crc32c and the others), compares
	// them with what has arrived, and keeps them.
	Checksums bool

	// MD5ETags says that the ETag of an object is the MD5 of its bytes. This holds for an object that was stored by
	// one request, and that is not encrypted with a key of KMS or of the customer.
	MD5ETags bool

	// SortedListings says that ListObjectsV2 lists keys in the order of their bytes.
	SortedListings bool

	// SlashPrefixes says that ListObjectsV2 and ListMultipartUploads take only prefixes that end in a slash.
	SlashPrefixes bool

	// BatchDelete is DeleteObjects. BatchDeletesMarkers says that one such request may hold the marker of a directory
	// and its files. versitygw may leave an empty directory, which is in the way of a file of the name.
	BatchDelete, BatchDeletesMarkers bool

	// LockedMarkers says that DeleteObject of the marker of a directory is refused with InvalidRequest in a bucket
	// with Object Lock, and DeleteObjects is not. Both only hide the marker.
	LockedMarkers bool

	// GhostPrefixes says that a listing with a delimiter may show prefixes under which only delete markers are. This
	// concerns buckets with versions.
	GhostPrefixes bool

	// MarkersApart says that a listing of versions has the delete markers of a page after its versions, so that it
	// does not tell their order. The IDs of versions do, because they begin with the time. Those of versitygw are
	// ULIDs, and it lists what a marker covers with the time of the marker. Those of SeaweedFS have nanoseconds in
	// hexadecimal digits, and it lists whole seconds.
	MarkersApart bool

	// EmptyDirectoryCode is the error code with which the server refuses PutObject and CopyObject while it removes the
	// directory, because another request deletes its last object. The code may also have its own meaning, so a client
	// repeats the request a few times. It is empty for a server without such a code. MinIO may also refuse
	// CompleteMultipartUpload then, and deletes the parts. If the parts are still there, the refusal is final.
	EmptyDirectoryCode string

	// AtomicReads says that an answer to HeadObject or GetObject is of one object, also while another client replaces
	// it. versitygw reads a file, its attributes and its ETag one after the other. So the size and the metadata may
	// be of one object, and the ETag of the next.
	AtomicReads bool

	// UnstoredAnswers says that the server may answer 200 to PutObject, CopyObject and CompleteMultipartUpload and
	// store nothing. The answer then has no type of a checksum. A client looks for the object, and repeats the
	// request. versitygw does so in these cases:
	//   - PutObject, and CopyObject, make a directory that another request has just made and removes again.
	//   - PutObject stores a file where another request makes a directory of the name, on a file system without
	//     O_TMPFILE.
	//   - CompleteMultipartUpload names an upload that was aborted, and an older object has the key; or another such
	//     request is under way.
	UnstoredAnswers bool

	// UnprefixedLookups says that HeadObject and GetObject report a missing key as missing only if s3:ListBucket is
	// allowed without the condition s3:prefix. With the condition they return 403. Ceph adds s3:prefix to the values of
	// a listing only (https://github.com/ceph/ceph/pull/68577).
	UnprefixedLookups bool

	// FullIAM says that policies of IAM know the actions for ACLs and for keys of KMS (s3:PutObjectAcl, kms:Decrypt,
	// kms:GenerateDataKey). Others refuse a policy with these actions, or pass over them.
	FullIAM bool

	// Decompresses says that the server sends an object with the Content-Encoding gzip decompressed, with another
	// size and without the range that was asked for, to clients that do not accept gzip.
	Decompresses bool
}

// profiles are those that are known. Where it depends on the version of a server, they say what the oldest that is in
// use can do.
func profiles() []Profile {
	return []Profile{
		{
			Name: "aws", ConditionalPut: true, ConditionalComplete: true, ConditionalCopy: true,
			ConditionalDelete:      true,
			ConditionalBatchDelete: true, BatchDeletesMarkers: true,
			PartCopy: true, UnequalParts: true, Checksums: true, MD5ETags: true, SortedListings: true,
			BatchDelete: true,
			AtomicReads: true, FullIAM: true,
		},
		{
			Name: "aws-directory", ConditionalPut: true, ConditionalComplete: true, ConditionalCopy: true,
			ConditionalDelete:      true,
			ConditionalBatchDelete: true, BatchDeletesMarkers: true,
			PartCopy: true, UnequalParts: true, Checksums: true, SlashPrefixes: true, BatchDelete: true,
			AtomicReads: true, FullIAM: true,
		},
		{
			Name: "minio", ConditionalPut: true, ConditionalComplete: true, BatchDeletesMarkers: true,
			PartCopy: true, UnequalParts: true, Checksums: true, MD5ETags: true, SortedListings: true,
			BatchDelete: true, EmptyDirectoryCode: "AccessDenied", LockedMarkers: true, GhostPrefixes: true,
			AtomicReads: true,
		},
		{
			Name: "ceph", ConditionalPut: true, UnquotedETags: true, BatchDeletesMarkers: true, LosesTags: true,
			MisreadPartSources: true, UntoldETags: true, UnprefixedLookups: true,
			UncheckedSources: true, PartCopy: true, UnequalParts: true, MD5ETags: true,
			SortedListings: true, BatchDelete: true,
			AtomicReads: true,
		},
		{
			Name: "r2", ConditionalPut: true, ConditionalComplete: true, BatchDeletesMarkers: true,
			PartCopy: true, Checksums: true, MD5ETags: true, SortedListings: true, BatchDelete: true,
			AtomicReads: true, LosesTags: true,
		},
		{
			Name:         "gcs",
			UnequalParts: true, MD5ETags: true, SortedListings: true, BatchDelete: true,
			BatchDeletesMarkers: true, AtomicReads: true, LosesTags: true, Decompresses: true,
		},
		{
			Name: "versitygw", ConditionalPut: true, ConditionalComplete: true, ConditionalDelete: true,
			InPlaceCopy: true,
			PartCopy:    true, UnequalParts: true, Checksums: true, MD5ETags: true,
			SortedListings: true,
			BatchDelete:    true, EmptyDirectoryCode: "ExistingObjectIsDirectory", UnstoredAnswers: true, MarkersApart: true,
		},
		{
			Name: "swift", UncheckedSources: true, PartLimit: FewParts, UnendedUploads: true, UnframedHeads: true,
			OvertakenAnswers: true, LosesTags: true, NoTags: true,
			PartCopy: true, UnequalParts: true,
			MD5ETags: true, SortedListings: true, BatchDelete: true,
			BatchDeletesMarkers: true, AtomicReads: true,
		},
		{
			Name: "seaweedfs", ConditionalPut: true,
			PartCopy: true, UnequalParts: true, BatchDelete: true, EmptyDirectoryCode: "InternalError",
			MarkersApart: true,
		},
		{Name: "backblaze", LosesTags: true, NoTags: true},
		{Name: "scaleway", PartLimit: FewParts},
		{Name: "ovh"}, // has the headers of Swift, and 10,000 parts
		{Name: "alibaba", VirtualHosts: true, LosesTags: true, NoTags: true},
		{Name: "tencent", VirtualHosts: true},
		{Name: "strict"},
	}
}

// Named returns the profile of a name, and false where there is none.
func Named(name string) (Profile, bool) {
	for _, p := range profiles() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Names are the names of all profiles.
func Names() []string {
	var names []string
	for _, p := range profiles() {
		names = append(names, p.Name)
	}
	return names
}

// ETagHeader is an ETag as a condition of a request has it: in quotes (RFC 9110, section 8.8.3), or without where the
// server compares it so.
func (p *Profile) ETagHeader(etag string) string {
	if p.UnquotedETags {
		return strings.Trim(etag, `"`)
	}
	return etag
}

// The limits on the parts of an upload. AWS documents the first
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html); Swift and Scaleway have the second.
const (
	maxParts = 10_000
	FewParts = 1_000
)

// MaxParts returns how many parts an upload may have.
func (p *Profile) MaxParts() int64 { return cmp.Or(p.PartLimit, maxParts) }

// PutsOn tells whether PutObject takes a condition: that there is no object, or that there is a certain one.
func (p *Profile) PutsOn(absent bool) bool { return p.ConditionalPut || absent && p.ExclusivePut }

// CompletesOn is the same of CompleteMultipartUpload.
func (p *Profile) CompletesOn(absent bool) bool {
	return p.ConditionalComplete || absent && p.ExclusiveComplete
}

// Resumes reports whether users can resume interrupted uploads. The driver finds an upload by a prefix that does not
// end in a slash. It resumes none on a server that may complete an upload twice, each time with the parts that are
// there.
func (p *Profile) Resumes() bool { return !p.SlashPrefixes && !p.UnendedUploads }

// Parts returns how many parts of about size bytes hold length bytes, and where each begins. Where parts may differ
// they are made nearly equal, so that the last is none too small to be followed by others. Otherwise all are of size
// but the last.
func (p *Profile) Parts(length, size int64) (count int64, begin func(part int64) int64) {
	count = (length + size - 1) / size
	if p.UnequalParts {
		return count, func(part int64) int64 { return length * part / count }
	}
	return count, func(part int64) int64 { return min(part*size, length) }
}
