package driver

// A Profile says what an S3 server can do beyond what all of them can, and which rules it enforces. S3 servers differ in nothing else that
// the driver knows of. The zero value is the strictest server: it offers nothing optional and enforces every rule.
type Profile struct {
	// Name is how a configuration names the profile, "aws" for example.
	Name string

	// ConditionalPut is PutObject with If-None-Match and If-Match, ConditionalComplete the same of CompleteMultipartUpload,
	// ConditionalCopy of CopyObject (for the object that is replaced, not for the source), and ConditionalDelete is DeleteObject and
	// DeleteObjects with If-Match.
	ConditionalPut, ConditionalComplete, ConditionalCopy, ConditionalDelete bool

	// PartCopy is UploadPartCopy.
	PartCopy bool

	// UnequalParts says that parts of a multipart upload may be of different sizes. Otherwise all but the last must be of one size.
	UnequalParts bool

	// ListUploads is ListMultipartUploads for a key.
	ListUploads bool

	// MD5ETags says that the ETag of an object which was stored by one request, and is not encrypted with a key of KMS or of the
	// customer, is the MD5 of its bytes.
	MD5ETags bool

	// SortedListings says that ListObjectsV2 lists keys in the order of their bytes.
	SortedListings bool

	// BatchDelete is DeleteObjects.
	BatchDelete bool
}

// profiles returns those that are known. What is known of each server, with its source, is in docs/s3-servers.md.
func profiles() []Profile {
	return []Profile{
		{
			Name: "aws", ConditionalPut: true, ConditionalComplete: true, ConditionalCopy: true, ConditionalDelete: true,
			PartCopy: true, UnequalParts: true, ListUploads: true, MD5ETags: true, SortedListings: true, BatchDelete: true,
		},
		{
			Name: "aws-directory", ConditionalPut: true, ConditionalComplete: true, ConditionalCopy: true, ConditionalDelete: true,
			PartCopy: true, UnequalParts: true, ListUploads: true, BatchDelete: true,
		},
		{
			Name: "minio", ConditionalPut: true, ConditionalComplete: true,
			PartCopy: true, UnequalParts: true, ListUploads: true, MD5ETags: true, SortedListings: true, BatchDelete: true,
		},
		{
			Name: "ceph", ConditionalPut: true, ConditionalComplete: true,
			PartCopy: true, UnequalParts: true, ListUploads: true, MD5ETags: true, SortedListings: true, BatchDelete: true,
		},
		{
			Name: "r2", ConditionalPut: true, ConditionalComplete: true,
			PartCopy: true, ListUploads: true, MD5ETags: true, SortedListings: true, BatchDelete: true,
		},
		{Name: "gcs", UnequalParts: true, ListUploads: true, MD5ETags: true, SortedListings: true},
		{
			Name: "versitygw", ConditionalPut: true, ConditionalComplete: true,
			PartCopy: true, UnequalParts: true, ListUploads: true, MD5ETags: true, SortedListings: true, BatchDelete: true,
		},
		{Name: "strict"},
	}
}

// ProfileNamed returns the profile of a name, and false where there is none.
func ProfileNamed(name string) (Profile, bool) {
	for _, p := range profiles() {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}
