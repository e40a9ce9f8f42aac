package s3api

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// lookAfterTimeout bounds the look at an object after a request without an answer. It may outlive the session.
const lookAfterTimeout = 30 * time.Second

// A change is a request that makes an object. Other clients may change the same object at any time.
//
// S3 may perform a request although its answer is lost, also some time later. So a change never sends a request again
// without a look. The metadata of what it makes hold a random name ([s3object.WriteKey]). Where the look shows that
// name, S3 has performed the request. Equal bytes prove nothing, because another client may have stored the same.
// Where the look shows an object that was there before the first attempt, S3 has not performed it: the object has the
// name that the caller has seen, or it is older. The change then sends the request again, on the condition that this
// object is still there. Anything else leaves open what has happened: the request may have been performed, and others
// have changed the object since. To send it again would undo what they did. The error is EAGAIN then.
//
// The ETag alone is no condition for a second attempt. After an append of b to b, another client that stores b restores
// the ETag, and the second attempt would make bb, which no client has stored.
//
// A proxy may send a request twice as well, and pass on the second answer: nginx does so by default with PUT, when it
// has lost its connection to S3. S3 has then performed the first one, and refused the second one on its condition. So
// a change looks after such a refusal too. Some proxies repeat the POST that ends an upload, and S3 then knows no such
// upload any more. There the name is that of the upload, which another session may have taken over and ended. So it
// proves something only as long as the upload belongs to this session.
type change struct {
	key       string
	name      string    // in the metadata of what the change makes
	condition Condition // of the caller
	supported bool      // S3 knows the condition
	timeout   time.Duration
	long      bool // it is a request of a multipart upload

	// send makes one attempt on a condition.
	send func(ctx context.Context, c Condition) (Stored, error)

	// pending tells whether S3 has certainly not performed the request, and will not perform an earlier attempt
	// besides another one. It is nil where only the object tells.
	pending func(ctx context.Context) bool

	// owns tells whether no other session may have made an object of the name. It is nil where none ever can.
	owns func(ctx context.Context) bool
}

// newName returns a name for what one request makes.
func newName() string { return rand.Text() }

// named returns user metadata with the name of a request, unless they would be more than S3 takes. Then no look can
// prove that S3 has performed the request.
func named(metadata map[string]string, name string) map[string]string {
	if !s3object.HasRoom(metadata, s3object.WriteKey, name) {
		return metadata
	}
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[s3object.WriteKey] = name
	return metadata
}

// perform makes a change. Where the answer was lost, it returns the ETag that a look has shown.
//
// The error is ESTALE where the condition did not hold when the change began, or a moment later. It is EAGAIN where it
// is not known what S3 has done. It is marked as [s3error.Doubtful] where S3 may yet perform an attempt.
func (b *Bucket) perform(ctx context.Context, w change) (_ Stored, failure error) {
	begun := b.moment()
	doubt := false      // an earlier attempt may have been performed
	unanswered := false // an earlier attempt may be performed late
	defer func() {
		if failure != nil && unanswered {
			failure = s3error.Doubtful(failure)
		}
	}()
	c := w.condition
	sent := false
	for t := newTries(ctx, w.long); ; {
		now, err := b.precondition(ctx, w.key, c, w.supported)
		switch {
		case err == nil:
			var made Stored
			made, err = attempt(ctx, t, w.timeout, func(ctx context.Context) (Stored, error) {
				return w.send(ctx, now)
			})
			if err == nil {
				return made, nil
			}
			sent = true
			if !s3error.NotPerformed(err) {
				doubt, unanswered = true, true
			}
			if !doubt && t.again(ctx, err) {
				continue
			}
		case doubt && !errors.Is(err, errReplaced): // no look
			return Stored{}, unknown(err)
		}
		failed := s3error.FromSDK(err)
		judged := sent && (errors.Is(failed, syscall.ESTALE) || errors.Is(failed, fs.ErrNotExist) ||
			s3error.IsNoSuchUpload(failed))
		if !doubt && !judged || errors.Is(failed, context.Canceled) {
			return Stored{}, failed
		}
		object, err := b.lookAfter(ctx, w.key)
		switch {
		case err == nil && object.is(w.name) && (doubt || w.owns == nil || w.owns(ctx)):
			return Stored{ETag: aws.ToString(object.ETag), Name: w.name}, nil
		case !doubt:
			return Stored{}, failed
		case err != nil:
			return Stored{}, unknown(failed)
		case w.pending != nil && w.pending(ctx):
			doubt = false // all attempts are one, whenever S3 performs it
		case c.shows(object): // not performed
		case object.olderThan(begun) && c.allows(object.etag()):
			c = Condition{ETag: object.etag(), Name: object.name(), ModTime: aws.ToTime(object.LastModified)}
		case object.olderThan(begun):
			return Stored{}, errReplaced
		default:
			return Stored{}, unknown(failed)
		}
		if !t.again(ctx, failed) {
			if doubt { // an earlier attempt may be late
				failed = unknown(failed)
			}
			return Stored{}, failed
		}
	}
}

// replacedIfGone is the error of a request on the condition of an ETag: S3 answers that there is no object where it
// is gone.
func (c Condition) replacedIfGone(err error) error {
	if c.ETag != "" && errors.Is(err, fs.ErrNotExist) {
		return &s3error.Error{Kind: errReplaced, Cause: err}
	}
	return err
}

// unknown says that it is not known what S3 has done.
func unknown(cause error) error { return &s3error.Error{Kind: syscall.EAGAIN, Cause: cause} }

// A look is what S3 has shown of an object after a request without an answer. The object is nil where there is none.
type look struct {
	*s3.HeadObjectOutput
	age    time.Duration // by the clock of S3
	marked bool          // there is no object, but a delete marker
}

// is tells whether a request of this name has made the object.
func (l look) is(name string) bool {
	return name != "" && l.HeadObjectOutput != nil && l.name() == name
}

// name is that of the request that has made the object, empty where it has none.
func (l look) name() string { return l.Metadata[s3object.WriteKey] }

// etag returns what tells the object from another one.
func (l look) etag() string { return validator(l.ETag, l.ContentLength, l.LastModified) }

// clockSkew is by how much the clocks of S3's machines may differ. An object may be dated by one of them, and the
// answer that shows it by another one, or by a proxy.
const clockSkew = time.Minute

// A moment is a time by the clock of this process, which runs evenly, and the last time that S3 had told by then.
type moment struct{ here, told time.Time }

func (b *Bucket) moment() moment { return moment{time.Now(), b.stats.Told()} }

// olderThan tells whether there is an object that was stored before a moment. It is for objects that no name proves
// to be the same.
//
// Two comparisons must say so. The object is dated before what S3 had told by the moment. This also holds when S3's
// clock was set forward since, but not when it was set back. And the object is older, by the answer that shows it,
// than the time since the moment. This also holds when the clock was set back, but not when it was set forward. So
// one step of the clock proves nothing wrong. Neither do machines whose clocks differ by less than clockSkew.
//
// An object that was put together of parts tells nothing: some servers date it from when its upload began.
func (l look) olderThan(begun moment) bool {
	return l.HeadObjectOutput != nil && l.age > time.Since(begun.here)+clockSkew &&
		aws.ToTime(l.LastModified).Add(clockSkew).Before(begun.told) && !strings.Contains(aws.ToString(l.ETag), "-")
}

// lookAfter looks at an object after a request without an answer. The look may outlive the session.
func (b *Bucket) lookAfter(ctx context.Context, key string) (look, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), lookAfterTimeout)
	defer done()
	object, err := b.look(ctx, key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return look{}, err
	}
	l := look{HeadObjectOutput: object}
	if refusal, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && refusal.Response != nil {
		l.marked = refusal.Response.Header.Get("X-Amz-Delete-Marker") == "true"
	}
	if object != nil {
		if now, ok := awsmiddleware.GetServerTime(object.ResultMetadata); ok {
			l.age = now.Sub(aws.ToTime(object.LastModified))
		}
	}
	return l, nil
}

// look sends HeadObject, and asks for checksums if the server keeps them.
func (b *Bucket) look(ctx context.Context, key string) (*s3.HeadObjectOutput, error) {
	return b.headObject(ctx, &s3.HeadObjectInput{Key: &key, ChecksumMode: b.checksumMode()})
}
