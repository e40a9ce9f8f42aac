// Package file describes objects and prefixes as files and directories: an [Info] is an [fs.FileInfo] made of a version
// of package s3api.
//
// A [Range] reads some bytes of one version of an object (GetObject). A [Reader] reads on from an offset: it begins
// with one request for all of the rest, and most downloads end with it. Where S3 is distant and slower than the client,
// it prefetches chunks by several requests in parallel.
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

// Permission bits shown for what S3 keeps none of: its owner reads and writes, everybody reads.
const (
	fileMode      = fs.FileMode(0o644)
	directoryMode = fs.ModeDir | 0o755
)

// An Object is what [fs.FileInfo]'s Sys returns, as a pointer: what S3 knows of a file or directory that FileInfo has
// no method for. Fields that the request did not bring are empty.
type Object struct {
	Key          string // with the prefix of the file system; a directory's ends with a slash
	ETag         string // with its quotes
	ContentType  string // not in listings
	StorageClass string // empty stands for STANDARD

	lastModified time.Time
	nameLanguage string
}

var _ contract.Object = (*Object)(nil)

// Created is when the object was stored, to the second. A time that was set, which ModTime returns, does not change it.
func (o *Object) Created() time.Time { return o.lastModified }

// MediaType is the Content-Type.
func (o *Object) MediaType() string { return o.ContentType }

// Archive is the storage class of an object that S3 must restore before it can be read, and empty for others. One that
// is restored for some days has its class all the same.
func (o *Object) Archive() string {
	switch types.StorageClass(o.StorageClass) {
	case types.StorageClassGlacier, types.StorageClassDeepArchive:
		return o.StorageClass
	}
	return ""
}

// NameLanguage is the language tag (BCP 47) of the object's name. It is the value of the user metadata
// "name-language", whose name it has. Without that metadata, and in listings, which show none, it is empty.
func (o *Object) NameLanguage() string { return o.nameLanguage }

// An Info describes a file or a directory. It is an [fs.FileInfo].
type Info struct {
	name    string
	size    int64
	mode    fs.FileMode
	modTime time.Time
	object  Object
}

var _ contract.Tagged = (*Info)(nil)

// Name is the last segment of the pathname.
func (i *Info) Name() string { return i.name }

// Size is the size in bytes, 0 for a directory.
func (i *Info) Size() int64 { return i.size }

// Mode has the same permission bits for all.
func (i *Info) Mode() fs.FileMode { return i.mode }

// ModTime is the time that was set, or the one of S3; zero where a directory has none.
func (i *Info) ModTime() time.Time { return i.modTime }

// IsDir tells directories from files.
func (i *Info) IsDir() bool { return i.mode.IsDir() }

// Key is the key of the object, or the prefix of the directory.
func (i *Info) Key() string { return i.object.Key }

// ETag is that of the object, without its quotes, empty where S3 has not told it.
func (i *Info) ETag() string { return strings.Trim(i.object.ETag, `"`) }

// Sys returns an [*Object].
func (i *Info) Sys() any { return &i.object }

// A TransferInfo describes the file of an upload or a download.
type TransferInfo struct {
	*Info
	Result s3api.Result // empty until the object of an upload is visible
}

var _ contract.Receipt = (*Stored)(nil)

// Checksum is the algorithm, a colon and the checksum in base64, empty where S3 has told none.
func (s *TransferInfo) Checksum() string { return s.Result.Checksum }

// RequestID is that of the request which made the object visible or reads it, empty where its answer was lost.
func (s *TransferInfo) RequestID() string { return s.Result.RequestID }

// New describes a version. A modification time in its attributes goes before the one of S3, of which some answers
// tell only the second.
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

// NewDir describes the directory whose keys start with prefix. The time is that of its marker.
func NewDir(name, prefix string, modTime time.Time) *Info {
	modTime = modTime.Truncate(time.Second)
	return &Info{name: name, mode: directoryMode, modTime: modTime, object: Object{Key: prefix, lastModified: modTime}}
}
