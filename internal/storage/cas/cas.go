// Package cas replaces objects in S3 by compare-and-swap, so that several servers can change one object without losing
// a change.
//
// [Bucket.Read] returns the current [Version] of an object, and [Bucket.Write] replaces this version, unless another
// server has replaced it first:
//
//	before, err := bucket.Read(ctx, key)
//	...
//	after, ok, err := bucket.Write(ctx, key, changed(before.Data), before)
//	if !ok {
//		// another server was faster: read again
//	}
//
// A write is a PutObject with the condition If-None-Match if the object does not exist, and If-Match otherwise. The
// package compensates for lost responses, for servers that compare ETags without their quotes, and for reads that mix
// two versions.
package cas

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// requestTimeout limits each request.
	requestTimeout = 30 * time.Second
	// writeAttempts limits the attempts to write a version. The SDK retries other requests as often.
	writeAttempts = 3
	// readAttempts limits the attempts to read two equal versions.
	readAttempts = 10
)

// A Client is the part of the S3 client that a [Bucket] uses.
type Client interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// A Bucket holds the objects. It is safe for concurrent use if Client is.
type Bucket struct {
	Client func() Client // called for each request
	Name   string

	// MaxSize is the maximum size of an object, in bytes.
	MaxSize int64

	// Unconditional lets Write succeed on servers that refuse or ignore conditions. There, two servers that write at
	// the same moment may both succeed.
	Unconditional bool

	bareETags atomic.Bool // S3 compares ETags without their quotes
}

// A Version is the content of an object and its ETag. Both are empty if the object does not exist.
type Version struct{ Data, ETag string }

// Exists reports whether there is an object.
func (v Version) Exists() bool { return v.ETag != "" }

// Write replaces the version before, and returns the new version. ok is false if another server has replaced it first.
// data must differ from all earlier versions of the object, for example by random bytes: if the response to the
// request is lost, Write reads the object and compares.
//
// It never repeats a request without reading the object first, because another server may have written since then, and
// S3 may not support conditions. After an error, the object may or may not have been written.
func (b *Bucket) Write(ctx context.Context, key, data string, before Version) (after Version, ok bool, err error) {
	bare := b.bareETags.Load()
	for attempt := 1; ; attempt++ {
		etag, err := b.put(ctx, key, data, before, bare)
		if err == nil {
			b.bareETags.Store(bare)
			return Version{data, etag}, true, nil
		}
		now, readErr := b.Read(ctx, key)
		switch {
		case readErr != nil:
			return Version{}, false, err
		case now.Data == data && now.Exists():
			b.bareETags.Store(bare)
			return now, true, nil
		case now == before && s3error.HasCode(err, "PreconditionFailed") && before.Exists() && !bare:
			// The condition is true, because all versions differ, and still S3 refused it. Ceph does so if the ETag has
			// quotes.
			bare = true
		case now == before && !s3error.HasCode(err, "PreconditionFailed") && attempt < writeAttempts:
		case now != before && s3error.IsConditionFailed(err):
			return now, false, nil
		default:
			return Version{}, false, err
		}
	}
}

// put sends a single request, and returns the ETag of the new version.
func (b *Bucket) put(ctx context.Context, key, data string, before Version, bare bool) (etag string, err error) {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	etag = before.ETag
	if bare {
		etag = strings.Trim(etag, `"`)
	}
	in := &s3.PutObjectInput{Bucket: &b.Name, Key: &key, Body: strings.NewReader(data), IfMatch: &etag}
	if etag == "" {
		in.IfMatch, in.IfNoneMatch = nil, aws.String("*")
	}
	// the SDK would repeat the request without reading the object
	once := func(o *s3.Options) { o.Retryer = aws.NopRetryer{} }
	out, err := b.Client().PutObject(ctx, in, once)
	if b.Unconditional && s3error.IsUnconditional(err) {
		in.IfMatch, in.IfNoneMatch, in.Body = nil, nil, strings.NewReader(data)
		out, err = b.Client().PutObject(ctx, in, once)
	}
	if err == nil && aws.ToString(out.ETag) == "" {
		err = errNotStored
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", b.URL(key), err)
	}
	return *out.ETag, nil
}

// errNotStored reports a 200 response without an ETag. Swift sends it if it performed a later request first, and then
// does not perform this one.
var errNotStored = errors.New("S3 responded without an ETag")

// URL returns the URL of an object, such as "s3://bucket/key".
func (b *Bucket) URL(key string) string { return "s3://" + b.Name + "/" + key }

// Read returns the current version of an object, which is empty if the object does not exist.
//
// A response may be inconsistent: while another server writes, versitygw may combine the content of one version with
// the ETag of another, or truncate the content. Therefore Read accepts a version only if its ETag is the MD5 of its
// content. If ETags are something else, as with KMS, it needs two equal responses in a row: the second response was
// read entirely after the first.
func (b *Bucket) Read(ctx context.Context, key string) (Version, error) {
	return b.read(ctx, key, "")
}

// ReadChanged is like Read, but returns known if the object still has the ETag of this version. This costs a request
// without a body on servers that support If-None-Match for reads.
func (b *Bucket) ReadChanged(ctx context.Context, key string, known Version) (Version, error) {
	now, err := b.read(ctx, key, known.ETag)
	if s3error.Status(err) == http.StatusNotModified {
		return known, nil
	}
	return now, err
}

func (b *Bucket) read(ctx context.Context, key, unless string) (Version, error) {
	var before Version
	for range readAttempts {
		now, err := b.get(ctx, key, unless)
		if err != nil || now == before || now.isConsistent() {
			return now, err
		}
		before = now
	}
	return Version{}, fmt.Errorf("read %s: other servers constantly overwrite it", b.URL(key))
}

// isConsistent reports whether the content and the ETag certainly belong to the same version.
func (v Version) isConsistent() bool {
	sum := md5.Sum([]byte(v.Data))
	return strings.Trim(v.ETag, `"`) == hex.EncodeToString(sum[:])
}

// get sends a single request. If the object has the ETag unless, the error has the status 304.
func (b *Bucket) get(ctx context.Context, key, unless string) (Version, error) {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	in := &s3.GetObjectInput{Bucket: &b.Name, Key: &key}
	if unless != "" {
		in.IfNoneMatch = &unless
	}
	out, err := b.Client().GetObject(ctx, in)
	if s3error.HasCode(err, "NoSuchKey") {
		return Version{}, nil
	}
	if err == nil {
		defer out.Body.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(out.Body, b.MaxSize)); err == nil {
			return Version{string(data), aws.ToString(out.ETag)}, nil
		}
	}
	return Version{}, fmt.Errorf("read %s: %w", b.URL(key), err)
}
