package driver_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// A connection connects a replica to S3. The clock of the replica may differ from the clock of S3, and its process may
// be frozen for some time.
//
// A frozen process sends no requests and reads no responses, but requests that it has sent still take effect. When it
// continues, its expired timers fire at the same time as its requests.
type connection struct {
	s3.HTTPClient
	replica   *replica
	operation func() *operation // the operation that sends the requests; nil for none
}

// Do implements s3.HTTPClient.
func (c connection) Do(r *http.Request) (*http.Response, error) {
	c.awaken()
	ctx, done := c.replica.awake(r.Context())
	defer done()
	skew := c.replica.skew
	r = r.Clone(ctx)
	for _, name := range []string{"If-Unmodified-Since", "X-Amz-Copy-Source-If-Unmodified-Since"} {
		shift(r.Header, name, -skew)
	}
	response, err := c.HTTPClient.Do(r)
	c.awaken()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"Date", "Last-Modified"} {
		shift(response.Header, name, skew)
	}
	if skew != 0 && response.Header.Get("Content-Type") == "application/xml" {
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return nil, err
		}
		body = shiftListed(body, skew)
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	return response, nil
}

// awaken waits until the replica is not frozen.
func (c connection) awaken() {
	if c.replica.awaken() && c.operation != nil {
		if op := c.operation(); op != nil {
			op.faulty.Store(true)
		}
	}
}

// awaken waits until the replica is not frozen. It reports whether it had to wait.
func (r *replica) awaken() bool {
	out := r.outage()
	if out == nil || !out.Frozen {
		return false
	}
	left := out.left(time.Since(r.world.begun))
	time.Sleep(left)
	return left > 0
}

// outage returns the outage of the replica, or nil if it has none.
func (r *replica) outage() *outage {
	if out := r.world.Cut; out != nil && out.Replica == r.index && r.world.counted.Load() {
		return out
	}
	return nil
}

// left returns how much of the outage is left at a time, or 0 if it has ended or not begun.
func (o *outage) left(at time.Duration) time.Duration {
	if at < o.After {
		return 0
	}
	return max(0, o.After+o.For-at)
}

// timersFire is the delay with which the timers of a process fire after it was frozen.
const timersFire = 5 * time.Millisecond

// awake returns a context that is canceled together with ctx, unless the replica is frozen at that time: requests
// that were sent cannot be withdrawn.
func (r *replica) awake(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if r.awaken() {
			time.Sleep(timersFire)
		}
		cancel(context.Cause(ctx))
	})
	return later, func() {
		stop()
		cancel(nil)
	}
}

// shift moves the time in a header.
func shift(h http.Header, name string, by time.Duration) {
	if at, err := http.ParseTime(h.Get(name)); err == nil {
		h.Set(name, at.Add(by).UTC().Format(http.TimeFormat))
	}
}

// listedTime matches a time in a listing.
var listedTime = regexp.MustCompile(`(<LastModified>)([^<]*)`)

// shiftListed moves the times in a listing.
func shiftListed(body []byte, by time.Duration) []byte {
	return listedTime.ReplaceAllFunc(body, func(element []byte) []byte {
		parts := listedTime.FindSubmatch(element)
		at, err := time.Parse(time.RFC3339, string(parts[2]))
		if err != nil {
			return element
		}
		return append(bytes.Clone(parts[1]), at.Add(by).UTC().Format("2006-01-02T15:04:05.000Z")...)
	})
}
