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

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

const (
	// requestTimeout bounds each request to S3.
	lockTimeout = 30 * time.Second
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

// A Client is the part of S3 that a Lock uses.
type lockClient interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// Options say which object is the lock.
type lockOptions struct {
	Client      func() lockClient // asked for each request
	Bucket, Key string

	// Expiry is after how long without another version the server that has the lock counts as dead.
	Expiry time.Duration
	// Settle is how long a server that has taken the lock waits before it looks whether it still has it. With 0 it
	// does not look, so that two servers may have the lock where S3 has no conditions.
	Settle time.Duration

	// Log gets that the lock of a dead server is taken.
	Log *slog.Logger
}

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
// Some S3 servers ignore conditions or refuse them. So a server can look again after a moment: the one that wrote
// last has the lock. There two servers can have it only if one of them takes longer for its write than the other
// waits.
//
// The struct is what one server knows of the lock. It is not safe for concurrent use.
type lock struct {
	lockOptions
	id    string
	held  bool
	bare  bool      // the server compares ETags without their quotes
	other version   // the last one of another server
	since time.Time // when this server first saw it
}

// A version is the content of the object, and its ETag. Both are empty where there is no object.
type version struct{ text, etag string }

// New makes a lock that this server does not have. It sends no request.
func newLock(o lockOptions) *lock { return &lock{lockOptions: o, id: rand.Text()} }

// String is the object, as a URL.
func (l *lock) String() string { return "s3://" + l.Bucket + "/" + l.Key }

// Held reports whether this server had the lock after the last Hold, and has not released it.
func (l *lock) Held() bool { return l.held }

// Await takes the lock as soon as no other server has it, and looks again after each poll. The error is that of
// [lock.Hold] or of ctx.
func (l *lock) Await(ctx context.Context, poll time.Duration) error {
	for {
		if held, err := l.Hold(ctx); err != nil || held {
			return err
		}
		if err := limits.Sleep(ctx, poll); err != nil {
			return err
		}
	}
}

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
			l.Log.Warn("a server has left a lock in S3; this server takes it", "lock", l.String())
		}
	}
	if written, err := l.write(ctx, l.id, now); err != nil || !written {
		l.held = l.held && err != nil
		return false, err
	}
	if !l.held && l.Settle > 0 {
		if err := limits.Sleep(ctx, l.Settle); err != nil {
			_ = l.Release(context.WithoutCancel(ctx)) // else it expires
			return false, err
		}
		if now, err = l.read(ctx); err != nil || !l.has(now) {
			return false, err
		}
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
	return time.Since(l.since) >= l.Expiry
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
	ctx, done := context.WithTimeout(ctx, lockTimeout)
	defer done()
	etag := before.etag
	if bare {
		etag = strings.Trim(etag, `"`)
	}
	in := &s3.PutObjectInput{Bucket: &l.Bucket, Key: &l.Key, Body: strings.NewReader(text), IfMatch: &etag}
	if etag == "" {
		in.IfMatch, in.IfNoneMatch = nil, aws.String("*")
	}
	once := func(o *s3.Options) { o.Retryer = aws.NopRetryer{} } // the SDK repeats requests without a look
	out, err := l.Client().PutObject(ctx, in, once)
	if s3error.IsUnconditional(err) {
		in.IfMatch, in.IfNoneMatch, in.Body = nil, nil, strings.NewReader(text)
		out, err = l.Client().PutObject(ctx, in, once)
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
	ctx, done := context.WithTimeout(ctx, lockTimeout)
	defer done()
	out, err := l.Client().GetObject(ctx, &s3.GetObjectInput{Bucket: &l.Bucket, Key: &l.Key})
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
