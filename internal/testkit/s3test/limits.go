package s3test

// Limit names something that S3 does and a server does not. A test of this package tries each, and fails when a
// server does what its limits deny.
type Limit string

const (
	// FileBesideDirectory is an object "a" and an object "a/b", each stored, read and listed.
	FileBesideDirectory Limit = "file-beside-directory"

	// SegmentOver255Bytes is a key with a segment between slashes that is longer than 255 bytes.
	SegmentOver255Bytes Limit = "segment-over-255-bytes"

	// ReplaceLongSegment is replacing an object whose last segment is longer than 227 bytes.
	ReplaceLongSegment Limit = "replace-long-segment"

	// EmptySegment is a key such as "a//b" or "/a".
	EmptySegment Limit = "empty-segment"

	// DotSegment is a key such as "a/./b" or "a/../b".
	DotSegment Limit = "dot-segment"

	// ReservedSegment is a key with a segment that the server reserves, ".sgwtmp".
	ReservedSegment Limit = "reserved-segment"

	// ControlCharactersInListings is a listing of keys with characters that XML 1.0 does not have, such as U+0001 and
	// U+FFFE, with EncodingType=url.
	ControlCharactersInListings Limit = "control-characters-in-listings"

	// ControlCharactersInDeleteObjects is DeleteObjects for such a key. DeleteObject works everywhere.
	ControlCharactersInDeleteObjects Limit = "control-characters-in-delete-objects"

	// MarkerWithContent is an object with content under a key that ends with a slash.
	MarkerWithContent Limit = "marker-with-content"

	// CopyMarker is CopyObject of an empty object under a key that ends with a slash.
	CopyMarker Limit = "copy-marker"

	// DeleteMissingMarker is DeleteObject of the key "a/", which no object has, while an object "a/b" exists. S3
	// answers 204.
	DeleteMissingMarker Limit = "delete-missing-marker"

	// CopyIntoChecksumUpload is UploadPartCopy into a multipart upload that was created with a checksum algorithm.
	CopyIntoChecksumUpload Limit = "copy-into-checksum-upload"

	// UploadsByPrefix is ListMultipartUploads of a prefix that is not the whole key. Without a prefix it works
	// everywhere.
	UploadsByPrefix Limit = "uploads-by-prefix"

	// Encryption is server-side encryption with a key of the server: S3's own (SSE-S3) or one of a KMS (SSE-KMS),
	// [KMSKey].
	Encryption Limit = "encryption"
)

// Limits is what a server does not do, each with the reason.
type Limits map[Limit]string

// Cannot reports whether the server has a limit, and the reason.
func (l Limits) Cannot(limit Limit) (reason string, yes bool) {
	reason, yes = l[limit]
	return reason, yes
}

// notInXML is why no server deletes such keys in bulk.
const notInXML = "the request is XML 1.0, where the SDK writes U+FFFD for the character"

// posixLimits is what versitygw does not do with its posix backend.
func posixLimits() Limits {
	return Limits{
		FileBesideDirectory: "an object is a file and a prefix a folder; the second is refused with 409",
		SegmentOver255Bytes: "a segment is a file name; refused with KeyTooLongError, or 409 " +
			"ExistingObjectIsDirectory in a folder, " +
			"which then stays, or 500 when a multipart upload is completed",
		ReplaceLongSegment: "the new content is linked beside the old one under a name 28 bytes longer",
		EmptySegment: "stored under the shortest path that a file system reads the same: as " +
			"a/b, or a",
		DotSegment: "stored under the shortest path that a file system reads the same: as " +
			"a/b, or b",
		ReservedSegment: "stored, and left out of every listing",
		ControlCharactersInListings: "EncodingType is not implemented, and the listing has U+FFFD for the " +
			"character",
		ControlCharactersInDeleteObjects: notInXML,
		MarkerWithContent:                "it is a folder; refused with 400 DirectoryObjectContainsData",
		CopyMarker:                       "the folder is opened as a file; 500 InternalError",
		DeleteMissingMarker:              "the folder is not empty; 409 ErrDirectoryNotEmpty",
		Encryption:                       "the headers are ignored",
	}
}

// minioLimits is what MinIO does not do on one drive.
func minioLimits() Limits {
	return Limits{
		FileBesideDirectory: "both are stored and read, but the listing hides everything under a/ " +
			"while a exists",
		SegmentOver255Bytes:              "a segment is a folder name on its drive; 400 XMinioInvalidObjectName",
		EmptySegment:                     "a//b is refused with 400 XMinioInvalidObjectName, /a is stored as a",
		DotSegment:                       "400 XMinioInvalidResourceName",
		ControlCharactersInDeleteObjects: notInXML,
		CopyIntoChecksumUpload:           "400 InvalidArgument: the copied part lacks the checksum",
		UploadsByPrefix:                  "the prefix is taken for the whole key",
	}
}
