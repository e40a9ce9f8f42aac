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
	// writeAttempts is how often a server tries to write a version, and to release a lock, as often as the SDK tries
	// other requests.
	writeAttempts = 3
	// readAttempts is how often a server reads the lock for two equal answers.
	readAttempts = 10
	// maxVersion bounds the size of a version, in bytes.
	maxVersion = 1 << 10
	// noHolder is the identifier in a released lock. Those of servers have no small letters.
	noHolder = "released"
)

// A lock lets only one of several servers do something, by an object in S3 (operations GetObject and
// PutObject).
//
// The object has the identifier of the server that has the lock. Each renewal writes another version. How old a
// version is, each server measures by itself: clocks may differ. Where the answer to a write is lost, the server
// reads the lock, and finds what it has written.
//
// A released lock stays, as an object without a holder. Each S3 server that knows conditions can bind a write to the
// version before, and few can so bind a deletion. So a repeated release does not hit the next holder.
//
// A lock is taken by a conditional write: If-None-Match where there is no object, and If-Match where there is one.
// Some S3 servers ignore conditions or refuse them. There two servers that take it at the same moment both have it,
// until the one that wrote first looks again.
//
// The struct is what one server knows of the lock. It is not safe for concurrent use.
type lock struct {
	client      func() Client // asked for each request
	bucket, key string
	// expiry is after how long without another version the server that has the lock counts as dead.
	expiry time.Duration
	log    *slog.Logger // gets that the lock of a dead server is taken

	id    string
	held  bool
	bare  bool      // the server compares ETags without their quotes
	other version   // the last one of another server
	since time.Time // when this server first saw it
}

// A version is the content of the object, and its ETag. Both are empty where there is no object.
type version struct{ text, etag string }

// newLock makes a lock that this server does not have. It sends no request.
func newLock(client func() Client, bucket, key string, log *slog.Logger) *lock {
	return &lock{client: client, bucket: bucket, key: key, log: log, id: rand.Text()}
}

// String is the object, as a URL.
func (l *lock) String() string { return "s3://" + l.bucket + "/" + l.key }

// Held reports whether this server had the lock after the last Hold, and has not released it.
func (l *lock) Held() bool { return l.held }

// Hold takes or renews the lock, and reports whether this server has it now. After an error it has what it had before.
func (l *lock) Hold(ctx context.Context) (held bool, err error) {
	now, err := l.read(ctx)
	if err != nil {
		return false, err
	}
	if !l.has(now) {
		l.held = false
		if now.isHeld() && !l.expired(now) {
			return false, nil
		}
		if now.isHeld() {
			l.log.Warn("a server has left a lock in S3; this server takes it", "lock", l.String())
		}
	}
	if written, err := l.write(ctx, l.id, now); err != nil || !written {
		l.held = l.held && err != nil
		return false, err
	}
	l.held = true
	return true, nil
}

// Release gives up the lock, if this server has it.
func (l *lock) Release(ctx context.Context) error {
	l.held = false
	var failed error
	for range writeAttempts {
		now, err := l.read(ctx)
		if err != nil || !l.has(now) {
			return err
		}
		if _, failed = l.write(ctx, noHolder, now); failed == nil {
			return nil
		}
	}
	return failed
}

// has tells whether a version is one of this server.
func (l *lock) has(v version) bool { return strings.HasPrefix(v.text, l.id+" ") }

// isHeld tells whether a version is one of a server that has the lock.
func (v version) isHeld() bool { return v.text != "" && !strings.HasPrefix(v.text, noHolder+" ") }

// expired tells whether the server that has written a version counts as dead.
func (l *lock) expired(v version) bool {
	if v != l.other {
		l.other, l.since = v, time.Now()
	}
	return time.Since(l.since) >= l.expiry
}

// write replaces a version by one of a holder. It returns false where another server has done so before.
//
// It never sends a request again without a look: another server may have taken the lock meanwhile, and S3 may know no
// conditions.
func (l *lock) write(ctx context.Context, holder string, before version) (written bool, err error) {
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
			// The condition holds, and S3 has refused it: each version has a text of its own. So do Ceph's servers
			// with an ETag in quotes.
			bare = true
		case now == before && !s3error.HasCode(err, "PreconditionFailed") && attempt < writeAttempts:
		case s3error.IsConditionFailed(err) && !l.has(now):
			return false, nil
		default:
			return false, err // also where an earlier request was late
		}
	}
}

// put writes a text in the place of a version, on that condition if S3 has conditions. The ETag may be bare, without
// its quotes.
func (l *lock) put(ctx context.Context, text string, before version, bare bool) error {
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
	once := func(o *s3.Options) { o.Retryer = aws.NopRetryer{} } // the SDK repeats requests without a look
	out, err := l.client().PutObject(ctx, in, once)
	if s3error.IsUnconditional(err) {
		in.IfMatch, in.IfNoneMatch, in.Body = nil, nil, strings.NewReader(text)
		out, err = l.client().PutObject(ctx, in, once)
	}
	if err == nil && aws.ToString(out.ETag) == "" {
		err = errNotStored
	}
	if err != nil {
		return fmt.Errorf("cannot write the lock %s: %w", l, err)
	}
	return nil
}

// errNotStored is for an answer 200 without an ETag. Swift gives it where it has performed a later request first, and
// then does not perform this one.
var errNotStored = errors.New("S3 answered without an ETag")

// read is what S3 has now.
//
// An answer may be torn. While another server writes, versitygw takes the text of one version and the ETag of another
// one, or cuts the text off. So a version is believed if its ETag is the MD5 of its text. Elsewhere, as with KMS, two
// answers must be equal: all of the second is younger than the first.
func (l *lock) read(ctx context.Context) (version, error) {
	var before version
	for range readAttempts {
		now, err := l.answer(ctx)
		if err != nil || now == before || now.isWhole() {
			return now, err
		}
		before = now
	}
	return version{}, fmt.Errorf("cannot read the lock %s: other servers write it all the time", l)
}

// isWhole tells whether the text and the ETag are of one version for certain.
func (v version) isWhole() bool {
	sum := md5.Sum([]byte(v.text))
	return strings.Trim(v.etag, `"`) == hex.EncodeToString(sum[:])
}

// answer is what S3 answers. It is the zero value where there is no object.
func (l *lock) answer(ctx context.Context) (version, error) {
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
	return version{}, fmt.Errorf("cannot read the lock %s: %w", l, err)
}
