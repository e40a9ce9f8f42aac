package s3api

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// lookAfterTimeout limits the HeadObject after a request without a response, which may outlive the session.
const lookAfterTimeout = 30 * time.Second

// A change is a request that makes an object. Other clients may change the same object at any time.
//
// S3 may perform a request whose response is lost, also some time later. The metadata of what a change makes hold a
// random name ([s3object.WriteKey]). After a lost response, the change checks the object before it repeats the request:
//
//   - The object has the name of this request: S3 has performed it.
//   - The object is the version of the caller's condition, and its name proves that: S3 has not performed the request,
//     and the change repeats it with this condition.
//   - Anything else: S3 may have performed the request, and another client may have changed the object since.
//     Repeating the request could undo that. The error is EAGAIN.
//
// Equal bytes or ETags prove nothing, because another client may have stored the same. For example, after an append of
// b to b, another client that stores b restores the ETag, and a repeated append would make bb, which no client stored.
//
// A proxy may repeat a request too and return only the second response: nginx does that for PUT when it loses its
// connection to S3. S3 has then performed the first request and refused the second one because of its condition. So a
// change also checks the object after such a refusal. Some proxies repeat the POST that completes an upload, and S3
// then responds that the upload does not exist. The name in the metadata is the name of the upload, which another
// session may have taken over and completed. So it is proof only while the upload belongs to this session.
type change struct {
	key       string
	name      string    // in the metadata of what the change makes
	condition Condition // of the caller
	supported bool      // S3 knows the condition
	timeout   time.Duration
	long      bool // it is a request of a multipart upload

	// send makes one attempt on a condition.
	send func(ctx context.Context, c Condition) (Stored, error)

	// pending reports whether S3 has certainly not performed the request, and performs it once at most, however often
	// it is sent. It is nil if only the object shows whether S3 has performed the request.
	pending func(ctx context.Context) bool

	// owns reports whether no other session may have made an object with the name. It is nil if none ever can.
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

// perform makes a change. After a lost response, it returns the ETag that HeadObject has shown.
//
// The error is ESTALE if the condition did not hold when the change began or a moment later. It is EAGAIN if it is
// unknown what S3 has done. It is marked as [s3error.Doubtful] if S3 may yet perform an attempt.
func (b *Bucket) perform(ctx context.Context, w change) (_ Stored, failure error) {
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
		case err == nil && isNamed(object, w.name) && (doubt || w.owns == nil || w.owns(ctx)):
			return Stored{ETag: aws.ToString(object.ETag), Name: w.name}, nil
		case !doubt:
			return Stored{}, failed
		case err != nil:
			return Stored{}, unknown(failed)
		case w.pending != nil && w.pending(ctx):
			doubt = false // all attempts are one, whenever S3 performs it
		case c.identifies(object): // not performed
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

// isNamed reports whether a request with this name has made the object. The object is nil if there is none.
func isNamed(object *s3.HeadObjectOutput, name string) bool {
	return name != "" && object != nil && object.Metadata[s3object.WriteKey] == name
}

// lookAfter requests an object after a request without a response, and returns nil if there is none. The request may
// outlive the session.
func (b *Bucket) lookAfter(ctx context.Context, key string) (*s3.HeadObjectOutput, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), lookAfterTimeout)
	defer done()
	object, err := b.look(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return object, err
}

// look sends HeadObject, and asks for checksums if the server keeps them.
func (b *Bucket) look(ctx context.Context, key string) (*s3.HeadObjectOutput, error) {
	return b.headObject(ctx, &s3.HeadObjectInput{Key: &key, ChecksumMode: b.checksumMode()})
}
