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

// Head returns the current version of an object and its attributes.
func (b *Bucket) Head(ctx context.Context, key string) (Version, s3object.Attributes, error) {
	v, a, _, err := b.HeadWithAge(ctx, key)
	return v, a, err
}

// version returns the version that a response describes.
func (b *Bucket) version(key string, out *s3.HeadObjectOutput) Version {
	v := Version{
		Bucket: b, Key: key, Size: aws.ToInt64(out.ContentLength), ModTime: aws.ToTime(out.LastModified),
		ETag: validator(out.ETag, out.ContentLength, out.LastModified), StorageClass: out.StorageClass,
		FromHead: true, Name: out.Metadata[s3object.WriteKey], metadata: out.Metadata,
	}
	if id := aws.ToString(out.VersionId); id != noVersion {
		v.ID = id
	}
	if v.Name != "" {
		b.stats.metadata.Store(true)
	}
	return v
}

// CheckMetadata returns an error if S3 has stored an object without its metadata, which some proxies remove. It sends
// no more requests once an object has shown that the server keeps metadata.
func (b *Bucket) CheckMetadata(ctx context.Context, key string, made Result) error {
	if made.Name == "" || b.stats.metadata.Load() {
		return nil
	}
	v, _, err := b.Head(ctx, key)
	// the metadata was kept, or it is unknown because HEAD failed or the object was replaced
	if err != nil || v.Name == made.Name || !sameETag(v.ETag, made.ETag) {
		return nil
	}
	return s3error.New(
		errors.ErrUnsupported,
		"S3 stored the object without its metadata; configure proxies to keep the headers x-amz-meta-*")
}

// HeadWithAge is like Head, and also returns how long ago the object was stored, by the clock of S3. Both S3 times are
// rounded to seconds.
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

// State returns the object of a key, its state, and how long ago it was stored. If the key does not exist, the version
// has no key. The state changes whenever the key changes, with one exception: a missing object has the same state
// before it is stored and after it is deleted, unless the bucket keeps versions and S3 returns the ID of the delete
// marker, as AWS and MinIO do.
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

// exactAttempts limits the requests of HeadExact. An object that is replaced between all of them changes many times per
// second.
const exactAttempts = 10

// HeadExact is like HeadWithAge, for a caller that then makes a conditional request with the ETag. seen is
// the version from an earlier response or a listing. Without an earlier response, it has only the key.
//
// If reads are not atomic (see the profile), a response may combine parts of two objects, one of which is replacing the
// other. No part is older than the request, however. So if an earlier response has shown the same ETag, no part is
// older than that version. If a part is newer, the object has another ETag by now, and the condition fails. HeadExact
// therefore repeats the request until two responses have the same ETag. The error is EAGAIN if the object changes too
// often.
func (b *Bucket) HeadExact(ctx context.Context, seen Version) (Version, s3object.Attributes, time.Duration, error) {
	for range exactAttempts {
		v, a, age, err := b.HeadWithAge(ctx, seen.Key)
		if err != nil || b.Profile.AtomicReads || sameETag(v.ETag, seen.ETag) {
			return v, a, age, err
		}
		seen = v
	}
	return Version{}, s3object.Attributes{}, 0,
		s3error.New(syscall.EAGAIN, "other clients keep replacing the object; try again later")
}

// noVersion is the version ID of objects that were stored while versioning was not enabled.
const noVersion = "null"

func (b *Bucket) headObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	in.Bucket = &b.Name
	out, err := b.sendHeadObject(ctx, in)
	if err == nil && !hasETag(out.ETag) { // deleted at the same time, or an object without an ETag
		out, err = b.sendHeadObject(ctx, in)
	}
	return out, err
}

func (b *Bucket) sendHeadObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	out, err := repeat(ctx, headTimeout, false, func(ctx context.Context) (*s3.HeadObjectOutput, error) {
		begin := time.Now()
		out, err := call(ctx, b, b.client.HeadObject, in, b.closeUnframed)
		if _, answered := errors.AsType[*smithyhttp.ResponseError](err); err == nil || answered {
			b.stats.Observe(time.Now(), time.Since(begin))
		}
		return out, err
	})
	if err == nil && !describesObject(out.ETag, out.LastModified, out.ResultMetadata) {
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
	out, err := b.sendGetObject(ctx, in)
	empty := s3error.Status(err) == http.StatusRequestedRangeNotSatisfiable
	if empty { // the object is empty, or the server does not support ranges
		in.Range = nil
		out, err = b.sendGetObject(ctx, in)
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

// errNoLength reports that the size of an object is unknown.
var errNoLength = s3error.New(syscall.EIO, "the HeadObject response has no Content-Length; a proxy may have removed it")

// closeUnframed closes the connection after a HeadObject, for servers whose response may be longer than it declares.
// Otherwise the next request on the connection would read the rest.
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

// errNoObject reports that a response does not come from S3 but, for example, from a proxy. Its headers do not describe
// the object.
var errNoObject = s3error.New(syscall.EIO, "the response has neither an ETag nor a request ID; it may come from a proxy")

// describesObject reports whether a response describes an object. It must have an ETag, or a request ID and a time.
//
// The callers repeat a request once if the response has no ETag. versitygw sends such a response while another client
// deletes the object: it opens the file and then finds no attribute for the ETag. If the second response has no ETag
// either, the object has none.
func describesObject(etag *string, modified *time.Time, response middleware.Metadata) bool {
	id, _ := awsmiddleware.GetRequestIDMetadata(response)
	return hasETag(etag) || modified != nil && id != ""
}
