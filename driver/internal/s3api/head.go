package s3api

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Head requests the version and the attributes of an object.
func (b *Bucket) Head(ctx context.Context, key string) (Version, s3object.Attributes, error) {
	v, a, _, err := b.HeadWithAge(ctx, key)
	return v, a, err
}

// version returns the version that an answer describes.
func (b *Bucket) version(key string, out *s3.HeadObjectOutput) Version {
	v := Version{
		Bucket: b, Key: key, Size: aws.ToInt64(out.ContentLength), ModTime: aws.ToTime(out.LastModified),
		ETag: validator(out.ETag, out.ContentLength, out.LastModified), StorageClass: out.StorageClass,
		Looked: true, Name: out.Metadata[s3object.WriteKey], metadata: out.Metadata,
	}
	if id := aws.ToString(out.VersionId); id != noVersion {
		v.ID = id
	}
	if v.Name != "" {
		b.stats.metadata.Store(true)
	}
	return v
}

// CheckMetadata returns an error if S3 has stored an object without its metadata, which some proxies remove. It stops
// making requests once the server has shown that it keeps metadata.
func (b *Bucket) CheckMetadata(ctx context.Context, key string, made Stored) error {
	if made.Name == "" || b.stats.metadata.Load() {
		return nil
	}
	v, _, err := b.Head(ctx, key)
	if err != nil || v.Name == made.Name || !sameETag(v.ETag, made.ETag) { // not known, kept, or replaced since
		return nil
	}
	return s3error.New(
		errors.ErrUnsupported,
		"S3 stored the object without its metadata; configure proxies to keep the headers x-amz-meta-*")
}

// HeadWithAge is Head, and how long ago the object was stored, by the clock of S3. Both times are whole seconds.
func (b *Bucket) HeadWithAge(ctx context.Context, key string) (Version, s3object.Attributes, time.Duration, error) {
	begin := time.Now()
	out, err := b.headObject(ctx, &s3.HeadObjectInput{Key: &key})
	if err != nil {
		return Version{}, s3object.Attributes{}, 0, err
	}
	now, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	if !ok {
		now = time.Now()
	}
	v := b.version(key, out)
	v.Seen = begin
	return v, s3object.FromHead(out), now.Sub(v.ModTime), nil
}

// State returns the object of a key and how long ago it was stored, or a version without a key if there is none. The
// state differs after each change of the key, except that a missing object has the same state before it is stored and
// after it is removed, unless the bucket keeps versions and S3 names the delete marker, as AWS and MinIO do.
func (b *Bucket) State(ctx context.Context, key string) (v Version, state string, age time.Duration, err error) {
	v, _, age, err = b.HeadWithAge(ctx, key)
	if err == nil {
		return v, v.Identity(), age, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Version{}, "", 0, err
	}
	if missing, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && missing.Response != nil {
		state = missing.Response.Header.Get("X-Amz-Version-Id")
	}
	return Version{}, state, 0, nil
}

// exactAttempts bounds the requests of HeadExact. An object that is replaced between all of them changes many times a
// second.
const exactAttempts = 10

// HeadExact is HeadWithAge for a caller that makes another request on the condition of the ETag. seen is what an
// earlier answer or a listing has shown of the key. Without an ETag it is the key only.
//
// Where reads are not atomic (see the profile), an answer may have parts of two objects, of which one replaces the
// other. But no part is older than the request. So where an earlier answer has shown the same ETag, no part is older
// than that version. If a part is newer, the object has another ETag by now, and the condition does not hold. An
// object that changes between two looks takes another one. The error is EAGAIN where it changes too often.
func (b *Bucket) HeadExact(ctx context.Context, seen Version) (Version, s3object.Attributes, time.Duration, error) {
	for range exactAttempts {
		v, a, age, err := b.HeadWithAge(ctx, seen.Key)
		if err != nil || b.Profile.AtomicReads || sameETag(v.ETag, seen.ETag) {
			return v, a, age, err
		}
		seen = v
	}
	return Version{}, s3object.Attributes{}, 0,
		s3error.New(syscall.EAGAIN, "other clients replace the object all the time")
}

// noVersion is the ID of objects that were stored while the bucket kept no versions.
const noVersion = "null"

func (b *Bucket) headObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	in.Bucket = &b.Name
	out, err := b.askHead(ctx, in)
	if err == nil && !hasETag(out.ETag) { // deleted meanwhile, or without one
		out, err = b.askHead(ctx, in)
	}
	return out, err
}

func (b *Bucket) askHead(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	out, err := ask(ctx, lookTimeout, false, func(ctx context.Context) (*s3.HeadObjectOutput, error) {
		begin := time.Now()
		out, err := call(ctx, b, b.client.HeadObject, in, b.closeUnframed)
		if _, answered := errors.AsType[*smithyhttp.ResponseError](err); err == nil || answered {
			b.stats.Observe(time.Now(), time.Since(begin))
		}
		return out, err
	})
	if err == nil && !ofObject(out.ETag, out.LastModified, out.ResultMetadata) {
		err = errNoObject
	}
	if err == nil && out.ContentLength == nil {
		out.ContentLength, err = b.sizeOf(ctx, in, out.ETag)
	}
	return out, err
}

// sizeOf requests the first byte of an object to learn its size, because proxies that compress or chunk responses
// remove Content-Length from the response to HEAD.
func (b *Bucket) sizeOf(ctx context.Context, head *s3.HeadObjectInput, etag *string) (*int64, error) {
	if sameETag(aws.ToString(etag), emptyMD5) { // Ceph sends no Content-Length for an empty object
		return aws.Int64(0), nil
	}
	in := &s3.GetObjectInput{
		Bucket: head.Bucket, Key: head.Key, VersionId: head.VersionId, Range: aws.String("bytes=0-0"),
	}
	if hasETag(etag) {
		in.IfMatch = Condition{ETag: *etag}.ifMatch(&b.Profile)
	}
	out, err := b.askObject(ctx, in)
	empty := s3error.Status(err) == http.StatusRequestedRangeNotSatisfiable
	if empty { // or the server does not support ranges
		in.Range = nil
		out, err = b.askObject(ctx, in)
	}
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	size := rangeSize(out, 0)
	if _, err := out.Body.Read(make([]byte, 1)); empty && errors.Is(err, io.EOF) {
		size = aws.Int64(0)
	}
	if size == nil {
		return nil, errNoLength
	}
	return size, nil
}

// emptyMD5 is the MD5 of an empty body.
const emptyMD5 = "d41d8cd98f00b204e9800998ecf8427e"

// errNoLength says that the size of an object is unknown.
var errNoLength = s3error.New(syscall.EIO, "the HeadObject response has no Content-Length; a proxy may have removed it")

// closeUnframed keeps other requests off the connection of a HeadObject whose answer may be longer than it says.
func (b *Bucket) closeUnframed(o *s3.Options) {
	if !b.Profile.UnframedHeads {
		return
	}
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Build.Add(middleware.BuildMiddlewareFunc("CloseConnection", func(
			ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler,
		) (middleware.BuildOutput, middleware.Metadata, error) {
			if request, ok := in.Request.(*smithyhttp.Request); ok {
				request.Close = true
			}
			return next.HandleBuild(ctx, in)
		}), middleware.After)
	})
}

// errNoObject says that an answer comes from another machine than S3, such as a proxy. Its size is not that of the
// object.
var errNoObject = s3error.New(syscall.EIO, "S3 answered without an ETag and without the ID of the request")

// ofObject tells whether an answer describes an object. It has an ETag, or else S3's ID of the request and a time.
//
// An answer without an ETag is asked for once more. versitygw sends none while another client deletes the object: it
// opens the file, and then misses the attribute. Two of them are of an object that has none.
func ofObject(etag *string, modified *time.Time, answer middleware.Metadata) bool {
	id, _ := awsmiddleware.GetRequestIDMetadata(answer)
	return hasETag(etag) || modified != nil && id != ""
}

// ReadTags requests the tags of an object that has some. CopyObject copies them, but a multipart upload gets only the
// tags of its request.
func (b *Bucket) ReadTags(ctx context.Context, key string, a *s3object.Attributes) error {
	if !a.Tagged || a.Tags != nil {
		return nil
	}
	out, err := ask(ctx, lookTimeout, false, func(ctx context.Context) (*s3.GetObjectTaggingOutput, error) {
		return call(ctx, b, b.client.GetObjectTagging, &s3.GetObjectTaggingInput{Bucket: &b.Name, Key: &key})
	})
	if err != nil {
		return err
	}
	a.Tags = s3object.TagQuery(func(yield func(string, string) bool) {
		for _, tag := range out.TagSet {
			if !yield(aws.ToString(tag.Key), aws.ToString(tag.Value)) {
				return
			}
		}
	})
	return nil
}
