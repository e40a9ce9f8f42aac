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

// Limits for repeating requests and for a single attempt.
const (
	// defaultPatience limits how long a request is repeated while a client waits for it. It is longer than a few
	// seconds of throttling, and shorter than the time after which most clients give up.
	defaultPatience = 25 * time.Second

	// longPatience multiplies the patience for requests of a multipart upload, because hours of work may depend on one
	// of them.
	longPatience = 12

	// headTimeout limits an attempt to read the attributes of one object or to delete it. listTimeout limits an attempt
	// that concerns many objects.
	headTimeout = 15 * time.Second
	listTimeout = 30 * time.Second

	// silenceTimeout limits how long S3 may take no bytes of a body, and how long it may take to respond after the last
	// byte.
	silenceTimeout = 30 * time.Second

	// partTimeout replaces silenceTimeout for a part, which some servers copy from disk to disk before they respond.
	partTimeout = 2 * time.Minute

	// slowestCopy is the assumed minimum speed, in bytes per second, at which S3 copies objects before it responds.
	slowestCopy = 1 << 20

	// unlimited is the timeout of requests that have their own limits.
	unlimited = 0

	// The pause before a request is repeated grows from firstPause to longestPause. Half of it is random, so that the
	// sessions of a busy server do not retry at the same moment.
	firstPause   = 100 * time.Millisecond
	longestPause = 4 * time.Second
)

// Retries configures how requests are repeated. The zero value means the defaults.
type Retries struct {
	// Patience limits how long a request is repeated. It is twelve times as long for requests of a multipart upload.
	Patience time.Duration
	Attempts int  // maximum number; 0 for no limit except the patience
	Steady   bool // use pauses without a random part

	LongestPause time.Duration // between two attempts; 0 for four seconds
}

// copyTimeout returns the timeout of a request for which S3 may copy this number of bytes before it responds: timeout,
// plus the time for the copy at the lowest speed.
func copyTimeout(bytes int64, timeout time.Duration) time.Duration {
	return timeout + time.Duration(bytes/slowestCopy)*time.Second
}

type retriesKey struct{}

// WithRetries returns a context that replaces the default retries of requests, which are 25 seconds with random pauses.
func WithRetries(ctx context.Context, r Retries) context.Context {
	return context.WithValue(ctx, retriesKey{}, r)
}

// tries counts the attempts of one request.
//
// The SDK makes only one attempt. Its own retries would not check what other clients have done since the first attempt,
// would give up after three attempts, and would share one budget between all users of a client.
type tries struct {
	Retries
	until time.Time // no attempt except the second begins later
	pause time.Duration
	made  int // number of failed attempts
}

// newTries starts the clock. long is set for requests of a multipart upload.
func newTries(ctx context.Context, long bool) *tries {
	r, _ := ctx.Value(retriesKey{}).(Retries)
	patience := cmp.Or(r.Patience, defaultPatience)
	if long {
		patience *= longPatience
	}
	r.LongestPause = cmp.Or(r.LongestPause, longestPause)
	return &tries{Retries: r, until: time.Now().Add(patience), pause: min(firstPause, r.LongestPause)}
}

// again waits before another attempt. It returns false if the next attempt would fail in the same way, or if the
// patience is over. A second attempt is always allowed, because the first one may have used a connection that the
// server had closed.
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

// withoutExpect keeps the SDK from sending "Expect: 100-continue" with large bodies. The header costs a round trip, and
// some proxies respond with 417.
const withoutExpect = -1

// requestOptions has the options of every request. It switches off the SDK's retries, and sets the attempt number of
// this package in the header with which the SDK reports it, for S3, logs and metrics.
func (b *Bucket) requestOptions(o *s3.Options) {
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
// The SDK closes the body of a request as soon as the response begins, when net/http may not have reached the end of
// the body yet. WriteTo of a closed body returns io.EOF, which net/http treats as an error, so it closes the connection
// in the middle of the response. Ceph, for example, begins its response to DeleteObjects before it deletes the first
// object.
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

// repeat sends an idempotent request and repeats it until S3 responds. It returns the last error, with a kind.
func repeat[T any](
	ctx context.Context, timeout time.Duration, long bool, send func(ctx context.Context) (T, error),
) (T, error) {
	for t := newTries(ctx, long); ; {
		out, err := attempt(ctx, t, timeout, send)
		if err == nil || !t.again(ctx, err) {
			return out, s3error.FromSDK(err)
		}
	}
}

// attempt makes one attempt of a request, and cancels it if S3 does nothing for the timeout. Canceling closes the
// connection. The time that the request waits for its turn does not count.
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

// A sentBody is the body of one attempt. Each read restarts the idle timeout, because S3 is taking bytes.
type sentBody struct {
	io.ReadSeeker
	size     int64
	progress func()
}

// newSentBody returns the body for an attempt, from its first byte. ctx is the context of the attempt.
func newSentBody(ctx context.Context, body io.ReadSeeker) (*sentBody, error) {
	size, err := body.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = body.Seek(0, io.SeekStart)
	}
	return &sentBody{body, size, idleProgress(ctx)}, err
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.progress()
	return b.ReadSeeker.Read(p)
}

// Size returns the number of bytes.
func (b *sentBody) Size() int64 { return b.size }

// Sleep waits for the delay, or returns the cause if ctx ends first.
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
