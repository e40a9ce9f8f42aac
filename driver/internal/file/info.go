// Package file presents objects and prefixes as files and directories.
//
// An [Info] is an [fs.FileInfo] made from a version of package s3api.
//
// A [Range] reads a range of bytes of one version of an object (GetObject) and continues with a new request if the
// connection breaks. A [Reader] reads from an offset to the end. It begins with one request for everything, and most
// downloads finish with this request. If S3 is far away and slower than the client, the Reader prefetches chunks with
// several requests in parallel.
package file

import (
	"io/fs"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/contract"
)

// S3 has no permission bits, so all files and directories show the same ones.
const (
	fileMode      = fs.FileMode(0o644)
	directoryMode = fs.ModeDir | 0o755
)

// An Object is the result of [fs.FileInfo]'s Sys method, as a pointer. It has the attributes of a file or directory for
// which FileInfo has no method. Fields that the response did not contain are empty.
type Object struct {
	Key          string // includes the prefix of the file system; ends with a slash for a directory
	ETag         string // with quotes
	ContentType  string // empty in listings
	StorageClass string // empty for STANDARD

	lastModified time.Time
	nameLanguage string
}

var _ contract.Object = (*Object)(nil)

// Created returns when the object was stored, in whole seconds. Unlike ModTime, it does not depend on a time that a
// client has set.
func (o *Object) Created() time.Time { return o.lastModified }

// MediaType returns the Content-Type.
func (o *Object) MediaType() string { return o.ContentType }

// Archive returns the storage class of an object that S3 must restore before it can be read, or the empty string for
// other objects. A temporarily restored object still has its archive class.
func (o *Object) Archive() string {
	switch types.StorageClass(o.StorageClass) {
	case types.StorageClassGlacier, types.StorageClassDeepArchive:
		return o.StorageClass
	}
	return ""
}

// NameLanguage returns the language tag (BCP 47) of the object's name, from the user metadata "name-language". It is
// empty without this metadata, and in listings, which do not include metadata.
func (o *Object) NameLanguage() string { return o.nameLanguage }

// An Info describes a file or a directory. It implements [fs.FileInfo].
type Info struct {
	name    string
	size    int64
	mode    fs.FileMode
	modTime time.Time
	object  Object
}

var _ contract.Tagged = (*Info)(nil)

// Name returns the last segment of the pathname.
func (i *Info) Name() string { return i.name }

// Size returns the size in bytes, which is 0 for a directory.
func (i *Info) Size() int64 { return i.size }

// Mode returns the permission bits, which are the same for all files and for all directories.
func (i *Info) Mode() fs.FileMode { return i.mode }

// ModTime returns the time that a client has set, or else the time from S3. It is zero for a directory without a time.
func (i *Info) ModTime() time.Time { return i.modTime }

// IsDir reports whether this is a directory.
func (i *Info) IsDir() bool { return i.mode.IsDir() }

// Key returns the key of the object, or the prefix of the directory.
func (i *Info) Key() string { return i.object.Key }

// ETag returns the ETag of the object without quotes, or the empty string if it is unknown.
func (i *Info) ETag() string { return strings.Trim(i.object.ETag, `"`) }

// Sys returns an [*Object].
func (i *Info) Sys() any { return &i.object }

// A TransferInfo describes the file of an upload or a download.
type TransferInfo struct {
	*Info
	Result     s3api.Result // empty until the object of an upload is visible
	VerifiedBy string       // confirmation of the promised hash of an upload: s3, parts, or empty
}

var _ contract.Receipt = (*TransferInfo)(nil)

// Checksum returns an algorithm, a colon and the base64-encoded checksum, or the empty string if S3 has returned none.
func (s *TransferInfo) Checksum() string { return s.Result.Checksum }

// RequestID returns the ID of the request that stored the object or reads it, or the empty string if its response was
// lost.
func (s *TransferInfo) RequestID() string { return s.Result.RequestID }

// Verified returns "s3" if S3 has confirmed the promised hash of an upload, and "parts" if this process has, and S3 has
// confirmed the bytes in each request with another checksum. It is empty if no hash was promised.
func (s *TransferInfo) Verified() string { return s.VerifiedBy }

// New describes a version. A modification time in its attributes takes precedence over the time from S3, which is cut
// to whole seconds because some responses contain only those.
func New(name string, v *s3api.Version, a *s3object.Attributes) *Info {
	stored := v.ModTime.Truncate(time.Second)
	info := &Info{
		name: name, size: v.Size, mode: fileMode, modTime: stored,
		object: Object{
			Key: v.Key, ETag: v.ETag, ContentType: a.MediaType(), StorageClass: string(v.StorageClass),
			lastModified: stored, nameLanguage: a.NameLanguage(),
		},
	}
	if mtime, ok := a.MTime(); ok {
		info.modTime = mtime
	}
	return info
}

// NewDir describes the directory whose keys begin with prefix. modTime is the time of its marker.
func NewDir(name, prefix string, modTime time.Time) *Info {
	modTime = modTime.Truncate(time.Second)
	return &Info{name: name, mode: directoryMode, modTime: modTime, object: Object{Key: prefix, lastModified: modTime}}
}
