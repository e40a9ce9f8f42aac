package s3api

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// How long a request is repeated, and how long S3 may take to answer one attempt.
const (
	// defaultPatience is for how long a request is repeated that a client waits for: longer than a few seconds of
	// throttling, and not so long that most clients give up.
	defaultPatience = 25 * time.Second

	// longPatience times the patience is for how long requests of a multipart upload are repeated. Hours of work may
	// depend on one of them.
	longPatience = 12

	// lookTimeout bounds an attempt to look at, or to delete, one object. listTimeout bounds one for many objects.
	lookTimeout = 15 * time.Second
	listTimeout = 30 * time.Second

	// silenceTimeout is how long S3 may take nothing of a body, or not answer after it has all.
	silenceTimeout = 30 * time.Second

	// partTimeout is the same for a part, which some servers copy from disk to disk before they answer.
	partTimeout = 2 * time.Minute

	// slowestCopy is how many bytes S3 copies in a second, at least. It may do so before it answers.
	slowestCopy = 1 << 20

	// unlimited is for requests that have limits of their own.
	unlimited = 0

	// The pause before a request is repeated grows from firstPause to longestPause. Half of it is random, so that the
	// sessions of a busy server do not come back all at once.
	firstPause   = 100 * time.Millisecond
	longestPause = 4 * time.Second
)

// Retries says how requests are repeated.
type Retries struct {
	Patience time.Duration // how long; twelve times as long for requests of a multipart upload
	Attempts int           // how many there are at most; 0 for no limit but the patience
	Steady   bool          // the pauses are not random

	LongestPause time.Duration // between two attempts; 0 for four seconds
}

// copying returns the timeout of a request for which S3 copies so many bytes before it answers. Where these are few,
// it is that of other requests.
func copying(bytes int64, timeout time.Duration) time.Duration {
	return timeout + time.Duration(bytes/slowestCopy)*time.Second
}

type retriesKey struct{}

// WithRetries returns a context whose requests are repeated in another way than the default: for 25 seconds, with
// random pauses.
func WithRetries(ctx context.Context, r Retries) context.Context {
	return context.WithValue(ctx, retriesKey{}, r)
}

// tries are the attempts to get an answer to one request.
//
// The SDK makes one attempt only. It would repeat a request without a look at what others have done since, and give
// up after three attempts. The attempts of all users of a client would count together.
type tries struct {
	Retries
	until time.Time // no attempt begins later but the second
	pause time.Duration
	made  int // attempts that have failed
}

// newTries begins to count. long is for requests of a multipart upload.
func newTries(ctx context.Context, long bool) *tries {
	r, _ := ctx.Value(retriesKey{}).(Retries)
	patience := cmp.Or(r.Patience, defaultPatience)
	if long {
		patience *= longPatience
	}
	r.LongestPause = cmp.Or(r.LongestPause, longestPause)
	return &tries{Retries: r, until: time.Now().Add(patience), pause: min(firstPause, r.LongestPause)}
}

// again waits before another attempt. It returns false where the error would be the same, or when the patience has
// ended. A second attempt is always made, because the first one may have got a connection whose other end has gone.
func (t *tries) again(ctx context.Context, err error) bool {
	t.made++
	if ctx.Err() != nil || !s3error.Repeatable(err) || t.made == t.Attempts {
		return false
	}
	pause := t.pause
	if !t.Steady {
		pause = pause/2 + rand.N(pause/2)
	}
	if t.pause = min(2*t.pause, t.LongestPause); t.made > 1 && time.Now().Add(pause).After(t.until) {
		return false
	}
	return Sleep(ctx, pause) == nil
}

// withoutExpect keeps the SDK from sending "Expect: 100-continue" with large bodies. It costs a round trip, and some
// proxies respond with 417.
const withoutExpect = -1

// once is the option of every request: the SDK does not repeat it. The header by which the SDK tells S3 which attempt
// a request is has the number of this package, for S3, logs and metrics.
func (b *Bucket) once(o *s3.Options) {
	o.Retryer = aws.NopRetryer{}
	o.ContinueHeaderThresholdBytes = withoutExpect
	b.applyProfile(o)
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		const retry = "Retry"
		return errors.Join(
			stack.Finalize.Insert(
				middleware.FinalizeMiddlewareFunc("NumberAttempt", numberAttempt), retry, middleware.After),
			stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("PlainBody", plainBody), retry, middleware.After),
			s3error.DetectForeign(stack),
		)
	})
}

type attemptKey struct{}

func numberAttempt(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (middleware.FinalizeOutput, middleware.Metadata, error) {
	request, sent := in.Request.(*smithyhttp.Request)
	if number, repeated := ctx.Value(attemptKey{}).(int); sent && repeated {
		request.Header.Set("Amz-Sdk-Request", "attempt="+strconv.Itoa(number))
	}
	return next.HandleFinalize(ctx, in)
}

// plainBody hides that a body implements [io.WriterTo].
//
// The SDK closes the body of a request as soon as an answer begins, and net/http may still look whether the body has
// ended. A closed body of the SDK says io.EOF to WriteTo, which is an error there, and net/http closes the connection
// in the middle of the answer. Ceph begins its answer to DeleteObjects before it deletes the first object.
func plainBody(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (out middleware.FinalizeOutput, metadata middleware.Metadata, err error) {
	request, sent := in.Request.(*smithyhttp.Request)
	if sent && request.IsStreamSeekable() {
		if body, ok := request.GetStream().(io.ReadSeeker); ok {
			if in.Request, err = request.SetStream(struct{ io.ReadSeeker }{body}); err != nil {
				return out, metadata, err
			}
		}
	}
	return next.HandleFinalize(ctx, in)
}

// ask makes a request whose repetition changes nothing more, until S3 answers it. The error is the last one, with a
// kind.
func ask[T any](
	ctx context.Context, timeout time.Duration, long bool, send func(ctx context.Context) (T, error),
) (T, error) {
	for t := newTries(ctx, long); ; {
		out, err := attempt(ctx, t, timeout, send)
		if err == nil || !t.again(ctx, err) {
			return out, s3error.FromSDK(err)
		}
	}
}

// attempt makes one attempt of a request, which ends when S3 does nothing for a timeout. Its connection is not used
// again then. The time in which the request waits for its turn does not count.
func attempt[T any](
	ctx context.Context, t *tries, timeout time.Duration, send func(ctx context.Context) (T, error),
) (T, error) {
	if t.made > 0 {
		ctx = context.WithValue(ctx, attemptKey{}, t.made+1)
	}
	if timeout == unlimited {
		return send(ctx)
	}
	ctx, watch := watchIdle(ctx, timeout)
	defer watch.Close()
	out, err := send(ctx)
	if err != nil {
		err = watch.Error(err)
	}
	return out, err
}

// A sentBody is the body of one attempt. As long as S3 takes bytes of it, S3 does something.
type sentBody struct {
	io.ReadSeeker
	size     int64
	progress func()
}

// sent returns a body for an attempt, from its first byte on. The context is that of the attempt.
func sent(ctx context.Context, body io.ReadSeeker) (*sentBody, error) {
	size, err := body.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = body.Seek(0, io.SeekStart)
	}
	return &sentBody{body, size, idleProgress(ctx)}, err
}

// Read implements io.Reader.
func (b *sentBody) Read(p []byte) (int, error) {
	b.progress()
	return b.ReadSeeker.Read(p)
}

// Size is the number of bytes.
func (b *sentBody) Size() int64 { return b.size }

// Sleep waits, or returns the reason why ctx ended.
func Sleep(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
