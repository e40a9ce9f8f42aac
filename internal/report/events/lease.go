package events

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// writeAttempts limits the attempts to write a version or to release the lease. The SDK retries other requests as
	// often.
	writeAttempts = 3
	// readAttempts limits the attempts to read two equal versions.
	readAttempts = 10
	// maxVersion limits the size of a version, in bytes.
	maxVersion = 1 << 10
	// noHolder is the holder in a released lease. IDs of servers contain no lower-case letters.
	noHolder = "released"
)

// A lease lets only one of several servers do something at a time. It is an object in S3, which is read with GetObject
// and written with PutObject.
//
// The object contains the ID of the server that holds the lease. Each renewal writes a new version. Each server
// measures the age of a version by itself, because clocks may differ. If the response to a write is lost, the server
// reads the lease and finds what it wrote.
//
// A released lease is not deleted, but overwritten with an object without a holder. Every S3 server with conditions
// supports them for writes, but few do for deletions. So if the SDK repeats a release late, it does not affect the
// next holder.
//
// A lease is acquired with a conditional write: If-None-Match if the object does not exist, and If-Match otherwise.
// Some S3 servers ignore or reject conditions. On these, two servers that acquire the lease at the same moment both
// hold it, until the one that wrote first checks again.
//
// The struct holds what one server knows about the lease. It is not safe for concurrent use.
type lease struct {
	client      func() Client // called for each request
	bucket, key string
	// expiry is the time without a new version after which the holder is presumed dead.
	expiry time.Duration
	log    *slog.Logger // logs that the lease of a dead server is taken over

	id    string
	held  bool
	bare  bool      // S3 compares ETags without their quotes
	other version   // last version of another server
	since time.Time // when this server first saw other
}

// A version is the content of the object and its ETag. Both are empty if the object does not exist.
type version struct{ text, etag string }

// newLease returns a lease that this server does not hold. It sends no request.
func newLease(client func() Client, bucket, key string, log *slog.Logger) *lease {
	return &lease{client: client, bucket: bucket, key: key, log: log, id: rand.Text()}
}

// String returns the URL of the object.
func (l *lease) String() string { return "s3://" + l.bucket + "/" + l.key }

// Held reports whether this server held the lease after the last Hold and has not released it.
func (l *lease) Held() bool { return l.held }

// Hold acquires or renews the lease, and reports whether this server holds it now. After an error, its state is
// unchanged.
func (l *lease) Hold(ctx context.Context) (held bool, err error) {
	now, err := l.read(ctx)
	if err != nil {
		return false, err
	}
	if !l.isOwn(now) {
		l.held = false
		if now.isHeld() && !l.expired(now) {
			return false, nil
		}
		if now.isHeld() {
			l.log.Warn("webhook: lease of another server expired; taking it over", "lease", l.String())
		}
	}
	if written, err := l.write(ctx, l.id, now); err != nil || !written {
		l.held = l.held && err != nil
		return false, err
	}
	l.held = true
	return true, nil
}

// Release releases the lease if this server holds it.
func (l *lease) Release(ctx context.Context) error {
	l.held = false
	var failed error
	for range writeAttempts {
		now, err := l.read(ctx)
		if err != nil || !l.isOwn(now) {
			return err
		}
		if _, failed = l.write(ctx, noHolder, now); failed == nil {
			return nil
		}
	}
	return failed
}

// isOwn reports whether this server wrote a version as the holder.
func (l *lease) isOwn(v version) bool { return strings.HasPrefix(v.text, l.id+" ") }

// isHeld reports whether a server holds the lease in this version.
func (v version) isHeld() bool { return v.text != "" && !strings.HasPrefix(v.text, noHolder+" ") }

// expired reports whether the server that wrote a version is presumed dead.
func (l *lease) expired(v version) bool {
	if v != l.other {
		l.other, l.since = v, time.Now()
	}
	return time.Since(l.since) >= l.expiry
}

// write replaces a version by one with this holder. It returns false if another server was faster.
//
// It never repeats a request without reading the lease first, because another server may have acquired it since then,
// and S3 may not support conditions.
func (l *lease) write(ctx context.Context, holder string, before version) (written bool, err error) {
	text := holder + " " + rand.Text()
	bare := l.bare
	for attempt := 1; ; attempt++ {
		if err = l.put(ctx, text, before, bare); err == nil {
			l.bare = bare
			return true, nil
		}
		now, readErr := l.read(ctx)
		switch {
		case readErr != nil:
			return false, err
		case now.text == text:
			l.bare = bare
			return true, nil
		case now == before && s3error.HasCode(err, "PreconditionFailed") && before.etag != "" && !bare:
			// The condition is true, because the text of each version is unique, and still S3 refused it. Ceph does so
			// if the ETag has quotes.
			bare = true
		case now == before && !s3error.HasCode(err, "PreconditionFailed") && attempt < writeAttempts:
		case s3error.IsConditionFailed(err) && !l.isOwn(now):
			return false, nil
		default:
			return false, err // also if an earlier request arrived late
		}
	}
}

// put overwrites a version with text, on the condition that it is unchanged if S3 supports conditions. If bare is set,
// the condition has an ETag without quotes.
func (l *lease) put(ctx context.Context, text string, before version, bare bool) error {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	etag := before.etag
	if bare {
		etag = strings.Trim(etag, `"`)
	}
	in := &s3.PutObjectInput{Bucket: &l.bucket, Key: &l.key, Body: strings.NewReader(text), IfMatch: &etag}
	if etag == "" {
		in.IfMatch, in.IfNoneMatch = nil, aws.String("*")
	}
	// the SDK would repeat the request without reading the lease
	once := func(o *s3.Options) { o.Retryer = aws.NopRetryer{} }
	out, err := l.client().PutObject(ctx, in, once)
	if s3error.IsUnconditional(err) {
		in.IfMatch, in.IfNoneMatch, in.Body = nil, nil, strings.NewReader(text)
		out, err = l.client().PutObject(ctx, in, once)
	}
	if err == nil && aws.ToString(out.ETag) == "" {
		err = errNotStored
	}
	if err != nil {
		return fmt.Errorf("write lease %s: %w", l, err)
	}
	return nil
}

// errNotStored reports a 200 response without an ETag. Swift sends it if it performed a later request first, and then
// does not perform this one.
var errNotStored = errors.New("S3 responded without an ETag")

// read returns the current version in S3.
//
// A response may be inconsistent: while another server writes, versitygw may combine the text of one version with the
// ETag of another, or truncate the text. Therefore read accepts a version only if its ETag is the MD5 of its text. If
// ETags are something else, as with KMS, it needs two equal responses in a row: the second response was read entirely
// after the first.
func (l *lease) read(ctx context.Context) (version, error) {
	var before version
	for range readAttempts {
		now, err := l.get(ctx)
		if err != nil || now == before || now.isConsistent() {
			return now, err
		}
		before = now
	}
	return version{}, fmt.Errorf("read lease %s: other servers constantly overwrite it", l)
}

// isConsistent reports whether the text and the ETag certainly belong to the same version.
func (v version) isConsistent() bool {
	sum := md5.Sum([]byte(v.text))
	return strings.Trim(v.etag, `"`) == hex.EncodeToString(sum[:])
}

// get returns the response of S3. It is the zero value if the object does not exist.
func (l *lease) get(ctx context.Context) (version, error) {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	out, err := l.client().GetObject(ctx, &s3.GetObjectInput{Bucket: &l.bucket, Key: &l.key})
	if s3error.HasCode(err, "NoSuchKey") {
		return version{}, nil
	}
	if err == nil {
		defer out.Body.Close()
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(out.Body, maxVersion)); err == nil {
			return version{string(text), aws.ToString(out.ETag)}, nil
		}
	}
	return version{}, fmt.Errorf("read lease %s: %w", l, err)
}
