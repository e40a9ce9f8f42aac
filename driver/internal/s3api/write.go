package s3api

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"maps"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// headAfterWriteTimeout limits the HeadObject that follows a write without a response. This request continues even if
// the session ends.
const headAfterWriteTimeout = 30 * time.Second

// A conditionalWrite is a request that creates an object. Other clients may change the same object at any time.
//
// If the response to a request is lost, S3 may have performed the request, or may perform it some time later. Each
// write therefore puts a random name into the metadata of its object ([s3object.WriteKey]). After a lost response,
// perform checks the object before it repeats the request:
//
//   - The object has the name of this request: S3 has performed it.
//   - The object is the version of the caller's condition, and its name proves that: S3 has not performed the request,
//     and perform repeats it with this condition.
//   - Anything else: S3 may have performed the request, and another client may have changed the object since.
//     Repeating the request could undo that. The error is EAGAIN.
//
// Equal bytes or ETags prove nothing, because another client may have stored the same. For example, after an append of
// b to b, another client that stores b restores the ETag, and a repeated append would make bb, which no client stored.
//
// A proxy may repeat a request too and return only the second response: nginx does that for PUT when it loses its
// connection to S3. S3 has then performed the first request and refused the second one because of its condition. So
// perform also checks the object after such a refusal. Some proxies repeat the POST that completes an upload, and S3
// then responds that the upload does not exist. The name in the metadata is the name of the upload, which another
// session may have taken over and completed. So it is proof only while the upload belongs to this session.
type conditionalWrite struct {
	key       string
	name      string    // in the metadata of the object
	condition Condition // as the caller requested it
	supported bool      // whether S3 supports the condition
	timeout   time.Duration
	long      bool // whether the request is part of a multipart upload, which is retried for longer

	// send makes one attempt with a condition.
	send func(ctx context.Context, c Condition) (Result, error)

	// pending reports whether S3 has certainly not performed the request yet and will perform it at most once, no
	// matter how often it is sent. It is nil if only the object shows whether S3 has performed the request.
	pending func(ctx context.Context) bool

	// owns reports whether no other session can have created an object with this name. It is nil if none ever can.
	owns func(ctx context.Context) bool
}

// newName returns a random name for one request.
func newName() string { return rand.Text() }

// withName returns the user metadata with the name of a request added. If the name does not fit within S3's limit, it
// returns the metadata unchanged, and HeadObject cannot prove later that S3 has performed the request.
func withName(metadata map[string]string, name string) map[string]string {
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

// perform sends a write. If the response is lost but the object proves that S3 has performed the write, it returns the
// ETag from HeadObject.
//
// The error is ESTALE if the condition did not hold when the write began or shortly afterwards. It is EAGAIN if it is
// unknown what S3 has done, and it is marked as [s3error.Doubtful] if S3 may still perform an attempt.
func (b *Bucket) perform(ctx context.Context, w conditionalWrite) (_ Result, failure error) {
	uncertain := false  // S3 may have performed an earlier attempt
	mayRunLate := false // S3 may still perform an earlier attempt
	defer func() {
		if failure != nil && mayRunLate {
			failure = s3error.Doubtful(failure)
		}
	}()
	c := w.condition
	sent := false
	for t := newTries(ctx, w.long); ; {
		now, err := b.precondition(ctx, w.key, c, w.supported)
		switch {
		case err == nil:
			var made Result
			made, err = attempt(ctx, t, w.timeout, func(ctx context.Context) (Result, error) {
				return w.send(ctx, now)
			})
			if err == nil {
				return made, nil
			}
			sent = true
			if !s3error.NotPerformed(err) {
				uncertain, mayRunLate = true, true
			}
			if !uncertain && t.again(ctx, err) {
				continue
			}
		case uncertain && !errors.Is(err, errReplaced): // the check with HeadObject failed
			return Result{}, unknown(err)
		}
		failed := s3error.FromSDK(err)
		refused := sent && (errors.Is(failed, syscall.ESTALE) || errors.Is(failed, fs.ErrNotExist) ||
			s3error.IsNoSuchUpload(failed))
		if !uncertain && !refused || errors.Is(failed, context.Canceled) {
			return Result{}, failed
		}
		object, err := b.headAfterWrite(ctx, w.key)
		switch {
		case err == nil && isNamed(object, w.name) && (uncertain || w.owns == nil || w.owns(ctx)):
			return resultOfHead(object, w.name), nil
		case !uncertain:
			return Result{}, failed
		case err != nil:
			return Result{}, unknown(failed)
		case w.pending != nil && w.pending(ctx):
			uncertain = false // S3 performs only one of all attempts
		case c.identifies(object): // S3 has not performed the request
		default:
			return Result{}, unknown(failed)
		}
		if !t.again(ctx, failed) {
			if uncertain { // S3 may still perform an earlier attempt
				failed = unknown(failed)
			}
			return Result{}, failed
		}
	}
}

// replacedIfGone converts the error of a request with If-Match. If the object has been deleted, S3 responds with 404,
// which means here that the condition does not hold.
func (c Condition) replacedIfGone(err error) error {
	if c.ETag != "" && errors.Is(err, fs.ErrNotExist) {
		return &s3error.Error{Kind: errReplaced, Cause: err}
	}
	return err
}

// unknown returns the error for a request whose effect is unknown.
func unknown(cause error) error { return &s3error.Error{Kind: syscall.EAGAIN, Cause: cause} }

// isNamed reports whether a request with this name has created the object. The object is nil if the key does not exist.
func isNamed(object *s3.HeadObjectOutput, name string) bool {
	return name != "" && object != nil && object.Metadata[s3object.WriteKey] == name
}

// headAfterWrite sends HeadObject after a write without a response. It returns nil if the object does not exist. The
// request continues even if the session ends.
func (b *Bucket) headAfterWrite(ctx context.Context, key string) (*s3.HeadObjectOutput, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), headAfterWriteTimeout)
	defer done()
	object, err := b.headWithChecksums(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return object, err
}

// headWithChecksums sends HeadObject, and requests checksums if the server keeps them.
func (b *Bucket) headWithChecksums(ctx context.Context, key string) (*s3.HeadObjectOutput, error) {
	return b.headObject(ctx, &s3.HeadObjectInput{Key: &key, ChecksumMode: b.checksumMode()})
}
