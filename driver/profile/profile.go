// Package profile describes how S3 servers differ: which optional operations each kind of server offers, and which
// rules it enforces.
//
// A [Profile] is a struct of facts about one kind of server, almost all of them bools. Code asks for the one fact that
// it depends on, and never for the name of a server:
//
//	p, ok := profile.Named("minio") // false for an unknown name
//	if p.PartCopy {
//		// use UploadPartCopy
//	} else {
//		// read the object, and upload it again
//	}
//
// Profiles come from the table in this package. The caller finds the name in the configuration, in the endpoint or in
// the headers of a response; package internal/storage/s3client does so for babelftp. For an unknown server, use the
// profile "strict", which is the zero value except for its name, and set the facts that the server has shown. [Names]
// returns all names.
//
// Methods combine several facts: [Profile.Resumes], [Profile.HasConditionalPut], [Profile.MaxParts] and
// [Profile.Parts].
//
// To add a server, add an entry to the table and the source of each fact to the list below. docs/s3-servers.md shows
// the table.
//
// # Sources
//
// The facts were tested on servers, except for these profiles, which follow documentation:
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
// These profiles follow documentation and reports, and otherwise equal strict:
//   - backblaze: no checksums, https://github.com/vatesfr/xen-orchestra/issues/8358; no conditions,
//     https://github.com/sathinduga/obsidian-s3-sync-and-backup/issues/78; no tags,
//     https://www.backblaze.com/apidocs/s3-copy-object
//   - scaleway: 1,000 parts, https://www.scaleway.com/en/docs/object-storage/api-cli/multipart-uploads/
//   - ovh: without a profile, its headers (https://github.com/ovh/public-cloud-roadmap/issues/573) would make it swift
//   - alibaba: https://www.alibabacloud.com/help/en/oss/developer-reference/compatibility-with-amazon-s3, which has no
//     operation for tags
//   - tencent: https://www.tencentcloud.com/document/product/436/7750
//
// minio ignores conditions in CopyObject and DeleteObject (https://github.com/minio/minio/issues/21677). ceph is 16.2:
// conditions of CompleteMultipartUpload arrived in 2025 (https://github.com/ceph/ceph/pull/64830), and checksums with
// Squid. seaweedfs was tested once. UploadPartCopy, parts of different sizes and DeleteObjects are assumed to work
// there, and the format of version IDs comes from its source:
// https://github.com/seaweedfs/seaweedfs/blob/master/weed/s3api/s3api_version_id.go.
package profile

import (
	"cmp"
	"strings"
)

// A Profile lists the optional features of an S3 server and the rules that it enforces. The driver depends on no other
// differences between servers. The zero value is the strictest server: it offers no optional feature and enforces every
// rule.
//
// docs/s3-servers.md shows the profiles as a table.
type Profile struct {
	// Name is the name of the profile in a configuration, for example "aws".
	Name string

	// These fields report support for conditions: ConditionalPut for If-None-Match and If-Match of PutObject,
	// ConditionalComplete for the same conditions of CompleteMultipartUpload, ConditionalCopy for conditions of
	// CopyObject on the object that is replaced (not on the source), and ConditionalDelete for If-Match of
	// DeleteObject.
	ConditionalPut, ConditionalComplete, ConditionalCopy, ConditionalDelete bool

	// UnquotedETags is set if conditions must contain ETags without quotes. Ceph's PutObject considers a quoted ETag to
	// be a different one.
	UnquotedETags bool

	// ConditionalBatchDelete is set if DeleteObjects compares ETags. Other servers ignore them and delete the objects.
	ConditionalBatchDelete bool

	// ExclusivePut and ExclusiveComplete are set if PutObject and CompleteMultipartUpload support If-None-Match, even
	// if they do not support If-Match. Exactly one of several simultaneous requests must succeed. They are not set for
	// Swift, which checks first and then lets several requests succeed.
	ExclusivePut, ExclusiveComplete bool

	// UncheckedSources is set if CopyObject and UploadPartCopy cannot compare the ETag of their source. Swift refuses
	// the correct ETag of an object that was uploaded in parts. Ceph ignores x-amz-copy-source-if-match because it
	// expects another header name. A client then sends a condition on the time of the source, and checks the source
	// again afterwards.
	UncheckedSources bool

	// InPlaceCopy is set if CopyObject of an object onto itself changes only its attributes and never its bytes, even
	// if another client replaces the object at the same time. Other servers may write the old bytes again.
	InPlaceCopy bool

	// PartCopy is set if the server supports UploadPartCopy.
	PartCopy bool

	// MisreadPartSources is set if UploadPartCopy decodes the percent-encoding of x-amz-copy-source twice. For a key
	// with a percent sign, the server then copies another object or crashes. A client downloads and uploads such an
	// object instead.
	MisreadPartSources bool

	// UnequalParts is set if the parts of a multipart upload may differ in size. Otherwise, all parts except the last
	// must have the same size, and the last part must not be larger.
	UnequalParts bool

	// UnframedHeads is set if the rest of a body may follow a HeadObject response, which must not have one. The next
	// response on the same connection then begins with these bytes.
	UnframedHeads bool

	// PartLimit is the maximum number of parts of an upload; 0 means 10,000 as in AWS. See [Profile.MaxParts].
	PartLimit int64

	// PersistentUploads is set if a multipart upload still exists after it was completed. Swift continues to list its
	// parts and completes it again. Interrupted uploads are therefore discarded instead of kept (see
	// [Profile.Resumes]).
	PersistentUploads bool

	// OvertakenSuccess is set if PutObject and CopyObject may return 200 without an ETag although the server has not
	// performed them, because a later request has already stored an object with the same key.
	OvertakenSuccess bool

	// CompletesWithoutETag is set if the CompleteMultipartUpload response has no ETag. A client sends HeadObject to get
	// it.
	CompletesWithoutETag bool

	// LosesTags is set if CreateMultipartUpload, and CopyObject with new metadata, ignore tags, so that the new object
	// has none.
	LosesTags bool

	// TagRequests is set if the server supports PutObjectTagging, which matters if LosesTags is set.
	TagRequests bool

	// NoTags is set if the server does not support tags and refuses requests that contain some.
	NoTags bool

	// VirtualHosts is set if the server accepts the name of a bucket only in the host name, and refuses it in the path.
	VirtualHosts bool

	// Checksums is set if the server accepts the checksums of requests (x-amz-checksum-crc32c and others), verifies
	// them and stores them.
	Checksums bool

	// MD5ETags is set if the ETag of an object is the MD5 of its bytes. This applies to objects that were stored with
	// one request and are not encrypted with a KMS key or a customer key.
	MD5ETags bool

	// SortedListings is set if ListObjectsV2 returns keys sorted by their bytes.
	SortedListings bool

	// SlashPrefixes is set if ListObjectsV2 and ListMultipartUploads accept only prefixes that end with a slash.
	SlashPrefixes bool

	// BatchDelete is set if the server supports DeleteObjects, and BatchDeletesMarkers if one such request may contain
	// the marker of a directory together with its files. versitygw may leave an empty directory behind, which then
	// prevents storing a file with the same name.
	BatchDelete, BatchDeletesMarkers bool

	// LockedMarkers is set if a bucket with Object Lock refuses DeleteObject for the marker of a directory with
	// InvalidRequest, but accepts DeleteObjects. Both would only hide the marker.
	LockedMarkers bool

	// GhostPrefixes is set if a listing with a delimiter may contain prefixes under which only delete markers exist.
	// This applies to buckets with versioning.
	GhostPrefixes bool

	// MarkersApart is set if a listing of versions returns the delete markers of a page after its versions and so does
	// not show their order. The version IDs do, because they begin with the time. versitygw uses ULIDs, and lists a
	// version that a delete marker hides with the time of the marker. SeaweedFS uses nanoseconds in hexadecimal digits,
	// and lists only whole seconds.
	MarkersApart bool

	// EmptyDirectoryCode is the error code with which the server refuses PutObject and CopyObject while it removes a
	// directory, because another request is deleting the last object in it. The same code may also have its usual
	// meaning, so a client repeats the request only a few times. It is empty if the server has no such code. MinIO may
	// also refuse CompleteMultipartUpload in this situation, and then deletes the parts. If the parts still exist, the
	// refusal is final.
	EmptyDirectoryCode string

	// AtomicReads is set if a response to HeadObject or GetObject always describes a single object, even while another
	// client replaces it. versitygw reads the file, its attributes and its ETag one after the other, so the size and
	// the metadata may belong to one object and the ETag to the next.
	AtomicReads bool

	// FalseSuccess is set if the server may return 200 for PutObject, CopyObject and CompleteMultipartUpload without
	// storing anything. The response then has no checksum type. A client checks the object and repeats the request.
	// versitygw does this in these cases:
	//   - PutObject or CopyObject creates a directory that another request has just created and is removing again.
	//   - PutObject stores a file while another request creates a directory with the same name, on a file system
	//     without O_TMPFILE.
	//   - CompleteMultipartUpload names an upload that was aborted, and an older object has the key, or the same
	//     request is already in progress.
	FalseSuccess bool

	// UnprefixedLookups is set if HeadObject and GetObject return 404 for a missing key only if a policy allows
	// s3:ListBucket without the condition s3:prefix. With the condition they return 403. Ceph evaluates s3:prefix only
	// for listings (https://github.com/ceph/ceph/pull/68577).
	UnprefixedLookups bool

	// FullIAM is set if IAM policies support the actions for ACLs and KMS keys (s3:PutObjectAcl, kms:Decrypt,
	// kms:GenerateDataKey). Other servers refuse or ignore policies with these actions.
	FullIAM bool

	// Decompresses is set if the server decompresses objects with the Content-Encoding gzip for clients that do not
	// accept gzip. The response then has another size and ignores the requested range.
	Decompresses bool
}

// profiles returns all known profiles. If a fact depends on the version of a server, the profile describes the oldest
// version in use.
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
			TagRequests: true, MisreadPartSources: true, CompletesWithoutETag: true, UnprefixedLookups: true,
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
			BatchDelete:    true, EmptyDirectoryCode: "ExistingObjectIsDirectory", FalseSuccess: true, MarkersApart: true,
		},
		{
			Name: "swift", UncheckedSources: true, PartLimit: FewParts, PersistentUploads: true, UnframedHeads: true,
			OvertakenSuccess: true, LosesTags: true, NoTags: true,
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
		{Name: "ovh"}, // sends the headers of Swift, but allows 10,000 parts
		{Name: "alibaba", VirtualHosts: true, LosesTags: true, NoTags: true},
		{Name: "tencent", VirtualHosts: true},
		{Name: "strict"},
	}
}

// Named returns the profile with this name, or false if it does not exist.
func Named(name string) (Profile, bool) {
	for _, p := range profiles() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Names returns the names of all profiles.
func Names() []string {
	var names []string
	for _, p := range profiles() {
		names = append(names, p.Name)
	}
	return names
}

// ETagHeader returns an ETag in the form that conditions of requests need: with quotes (RFC 9110, section 8.8.3), or
// without them if the server compares them without quotes.
func (p *Profile) ETagHeader(etag string) string {
	if p.UnquotedETags {
		return strings.Trim(etag, `"`)
	}
	return etag
}

// Limits for the number of parts of an upload. maxParts is AWS's limit
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html); Swift and Scaleway use FewParts.
const (
	maxParts = 10_000
	FewParts = 1_000
)

// MaxParts returns the maximum number of parts of an upload.
func (p *Profile) MaxParts() int64 { return cmp.Or(p.PartLimit, maxParts) }

// HasConditionalPut reports whether PutObject supports a condition: that the key does not exist (absent), or that it
// has a certain object.
func (p *Profile) HasConditionalPut(absent bool) bool {
	return p.ConditionalPut || absent && p.ExclusivePut
}

// HasConditionalComplete reports the same for CompleteMultipartUpload.
func (p *Profile) HasConditionalComplete(absent bool) bool {
	return p.ConditionalComplete || absent && p.ExclusiveComplete
}

// Resumes reports whether users can resume interrupted uploads. This needs listings of uploads with a prefix that does
// not end with a slash, and a server that cannot complete the same upload twice with different parts.
func (p *Profile) Resumes() bool { return !p.SlashPrefixes && !p.PersistentUploads }

// Parts divides length bytes into parts of at most size bytes. It returns the number of parts and a function that
// returns the offset of each part. If parts may differ in size, they are nearly equal, so that the last part is not too
// small to be followed by others. Otherwise all parts except the last have this size.
func (p *Profile) Parts(length, size int64) (count int64, begin func(part int64) int64) {
	count = (length + size - 1) / size
	if p.UnequalParts {
		return count, func(part int64) int64 { return length * part / count }
	}
	return count, func(part int64) int64 { return min(part*size, length) }
}
