package driver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// Permission bits shown for what S3 keeps none of: its owner reads and writes, everybody reads.
const (
	fileMode      = fs.FileMode(0o644)
	directoryMode = fs.ModeDir | 0o755
)

// mtimeKey is the user metadata that holds a modification time that was set: decimal seconds since 1970 with up to nine digits
// after the point, as rclone has it (https://rclone.org/s3/#modification-times-and-hashes).
const mtimeKey = "mtime"

const nanoDigits = 9 // of a second

// nameLanguageKey is the user metadata by which whoever stores an object may say in what language its name is: a language tag
// (BCP 47). The header is x-amz-meta-name-language; Content-Language is that of the content.
const nameLanguageKey = "name-language"

// An Object is what [fs.FileInfo]'s Sys returns, as a pointer: what S3 knows of a file or directory that FileInfo has no method
// for. Fields that the request did not bring are empty.
type Object struct {
	Key          string // with the prefix of the file system; a directory's ends with a slash
	ETag         string // with its quotes
	ContentType  string // not in listings
	StorageClass string // empty stands for STANDARD

	lastModified time.Time
	nameLanguage string
}

// Created is when the object was stored, to the second. A time that was set, which ModTime returns, does not change it.
func (o *Object) Created() time.Time { return o.lastModified }

// MediaType is the Content-Type.
func (o *Object) MediaType() string { return o.ContentType }

// NameLanguage is the language tag of the name, where the object's metadata tell it; not in listings.
func (o *Object) NameLanguage() string { return o.nameLanguage }

type fileInfo struct {
	name    string
	size    int64
	mode    fs.FileMode
	modTime time.Time
	object  Object
}

func (i *fileInfo) Name() string       { return i.name }
func (i *fileInfo) Size() int64        { return i.size }
func (i *fileInfo) Mode() fs.FileMode  { return i.mode }
func (i *fileInfo) ModTime() time.Time { return i.modTime }
func (i *fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i *fileInfo) Sys() any           { return &i.object }

// file describes a version. A modification time in its attributes goes before the one of S3, of which some answers tell only the
// second.
func file(name string, v *version, a *attributes) *fileInfo {
	stored := v.modTime.Truncate(time.Second)
	info := &fileInfo{
		name: name, size: v.size, mode: fileMode, modTime: stored,
		object: Object{
			Key: v.key, ETag: v.etag, ContentType: aws.ToString(a.contentType), StorageClass: string(v.class),
			lastModified: stored, nameLanguage: a.metadata[nameLanguageKey],
		},
	}
	if mtime, ok := parseMtime(a.metadata[mtimeKey]); ok {
		info.modTime = mtime
	}
	return info
}

// directory describes the directory whose keys start with prefix.
func directory(name, prefix string, modTime time.Time) *fileInfo {
	return &fileInfo{name: name, mode: directoryMode, modTime: modTime, object: Object{Key: prefix, lastModified: modTime}}
}

// Stat describes a file or, where there is none of the name, a directory. It takes one request for a file and two for a
// directory; [Fs.StatFile] and [Fs.StatDir] take one. A directory's modification time is zero unless a marker has it.
func (f *Fs) Stat(name string) (fs.FileInfo, error) {
	return f.stat(name, func(key string) (*fileInfo, error) {
		info, err := f.statFile(key)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EISDIR) {
			return f.statDirAndMarker(key)
		}
		return info, err
	})
}

// StatFile describes a file, in one request, or in none if [Options.Seen] remembers it.
func (f *Fs) StatFile(name string) (fs.FileInfo, error) {
	return f.stat(name, func(key string) (*fileInfo, error) {
		if info := f.opts.Seen.file(f.bucket, key); info != nil {
			return info, nil
		}
		return f.statFile(key)
	})
}

// StatDir describes a directory, in one request, or two where listings are not sorted. The root always exists, which takes none.
func (f *Fs) StatDir(name string) (fs.FileInfo, error) { return f.stat(name, f.statDirAndMarker) }

func (f *Fs) stat(name string, find func(key string) (*fileInfo, error)) (fs.FileInfo, error) {
	key, err := f.keys.Key(name)
	if err != nil {
		return nil, s3errors.PathError("stat", name, err)
	}
	info, err := find(key)
	if err != nil {
		return nil, s3errors.PathError("stat", name, err)
	}
	return info, nil
}

func (f *Fs) statFile(key string) (*fileInfo, error) {
	if f.keys.IsRoot(key) {
		return nil, syscall.EISDIR
	}
	v, a, err := f.bucket.head(f.ctx, key)
	if err != nil {
		return nil, err
	}
	return file(f.keys.Base(key), &v, &a), nil
}

func (f *Fs) statDir(key string) (*fileInfo, error) {
	prefix := f.keys.Directory(key)
	if f.keys.IsRoot(key) {
		return directory(keys.Separator, prefix, time.Time{}), nil
	}
	page, err := f.bucket.list(f.ctx, listing{prefix: prefix, limit: 1})
	if err != nil {
		return nil, err
	}
	if page.empty() {
		return nil, fs.ErrNotExist
	}
	var modTime time.Time
	for _, v := range page.versions {
		if v.key == prefix {
			modTime = v.modTime
		}
	}
	return directory(f.keys.Base(key), prefix, modTime), nil
}

// statDirAndMarker is statDir with the time of the marker, which servers whose listings are not sorted may list later.
func (f *Fs) statDirAndMarker(key string) (*fileInfo, error) {
	info, err := f.statDir(key)
	if err != nil || f.keys.IsRoot(key) || f.bucket.profile.SortedListings || !info.modTime.IsZero() {
		return info, err
	}
	marker, _, err := f.bucket.head(f.ctx, info.object.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return info, nil
	case err != nil:
		return nil, err
	}
	return directory(info.name, info.object.Key, marker.modTime), nil
}

// head asks for all that S3 says of an object but its bytes.
func (b *bucket) head(ctx context.Context, key string) (version, attributes, error) {
	out, err := b.headObject(ctx, &s3.HeadObjectInput{Key: &key})
	if err != nil {
		return version{}, attributes{}, err
	}
	return b.version(key, out), attributesOf(out), nil
}

// version is the one that S3 tells of.
func (b *bucket) version(key string, out *s3.HeadObjectOutput) version {
	v := version{
		bucket: b, key: key, size: aws.ToInt64(out.ContentLength), modTime: aws.ToTime(out.LastModified),
		etag: aws.ToString(out.ETag), class: out.StorageClass,
	}
	if id := aws.ToString(out.VersionId); id != noVersion {
		v.id = id
	}
	return v
}

// noVersion is the ID of what was stored while the bucket kept no versions.
const noVersion = "null"

func (b *bucket) headObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	in.Bucket = &b.name
	begin := time.Now()
	out, err := b.client.HeadObject(ctx, in)
	if _, answered := errors.AsType[*smithyhttp.ResponseError](err); err == nil || answered {
		b.route.stats.Observe(time.Now(), time.Since(begin))
	}
	if err != nil {
		return nil, s3errors.FromSDK(b.reason(ctx, *in.Key, err))
	}
	if out.ETag == nil {
		return nil, errNoETag
	}
	return out, nil
}

// errNoETag is an answer about an object that does not say which version of it. S3 always does; it is of something else on the way, and
// the size that it tells, or none, is not the object's.
var errNoETag = s3errors.New(syscall.EIO, "answer about an object has no ETag")

// reason finds out why a HEAD was refused as a bad request. The answer has no body and so no code: the key may be one that the
// server cannot have, or the credentials may have expired. A GET of the first byte is refused alike, with the code.
func (b *bucket) reason(ctx context.Context, key string, err error) error {
	response, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok || response.HTTPStatusCode() != http.StatusBadRequest {
		return err
	}
	out, getErr := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key, Range: aws.String("bytes=0-0")})
	if getErr != nil {
		return getErr
	}
	_ = out.Body.Close()
	return err
}

// formatMtime writes the value of mtimeKey.
func formatMtime(t time.Time) string {
	sign, seconds, nanos := "", t.Unix(), int64(t.Nanosecond())
	if seconds < 0 { // nanoseconds count forward, digits count away from zero
		sign, seconds = "-", -seconds
		if nanos > 0 {
			seconds, nanos = seconds-1, int64(time.Second)-nanos
		}
	}
	return fmt.Sprintf("%s%d.%09d", sign, seconds, nanos)
}

// parseMtime reads the value of mtimeKey. Others write it too, so what has no four-digit year is not taken for a time.
func parseMtime(value string) (time.Time, bool) {
	digits, negative := strings.CutPrefix(value, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	seconds, err := strconv.ParseUint(whole, 10, 63)
	if err != nil {
		return time.Time{}, false
	}
	nanos, err := strconv.ParseUint((fraction + strings.Repeat("0", nanoDigits))[:nanoDigits], 10, 63)
	if err != nil {
		return time.Time{}, false
	}
	t := time.Unix(int64(seconds), int64(nanos))
	if negative {
		t = time.Unix(-int64(seconds), -int64(nanos))
	}
	t = t.UTC()
	return t, t.Year() >= 1 && t.Year() <= 9999
}
