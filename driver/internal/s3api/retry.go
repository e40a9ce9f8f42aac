package s3api

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

const (
	// maxBreaks is how often in a row what S3 sends may break before reading fails. After each comes a request that the SDK itself
	// tries several times.
	maxBreaks = 4

	// breakDelay is waited after the second break in a row, and twice as long after each further: that, or up to half as much more.
	breakDelay = 100 * time.Millisecond

	// forgiveness is how many bytes must come after a break for it not to count any more.
	forgiveness = 64 << 10
)

// Retries is how often something was tried again. Its zero value is the one to begin with.
type Retries struct {
	breaks int
	moved  int // bytes since the last
}

// Progress says that bytes have come.
func (r *Retries) Progress(n int) {
	if r.breaks == 0 {
		return
	}
	if r.moved += n; r.moved >= forgiveness {
		*r = Retries{}
	}
}

// Pause waits before something is tried again that may pass, or returns why it shall not be.
func (r *Retries) Pause(ctx context.Context, err error) error {
	r.breaks++
	r.moved = 0
	if r.breaks > maxBreaks || !errors.Is(err, syscall.EAGAIN) {
		return err
	}
	var delay time.Duration
	if r.breaks > 1 {
		delay = breakDelay << (r.breaks - 2)
		delay += rand.N(delay / 2)
	}
	if Sleep(ctx, delay) != nil {
		return err
	}
	return nil
}

// attempts are those that the SDK makes of one request, by itself where there is no answer or one of an S3 out of order. It makes them also
// where an answer ends early or cannot be read. So they are for requests that may be made twice.
type attempts struct {
	aws.RetryerV2
	begun time.Time // where an object that is older cannot be what they have made; zero where it can
	count int
}

// counted is an option of the request.
func (a *attempts) counted(o *s3.Options) {
	if retryer, ok := o.Retryer.(aws.RetryerV2); ok {
		a.RetryerV2, o.Retryer = retryer, a
	}
}

// repeatable is the option of a request whose attempts the caller does not count.
func repeatable(o *s3.Options) { new(attempts).counted(o) }

// GetAttemptToken implements aws.RetryerV2. It is asked for before each attempt.
func (a *attempts) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	a.count++
	return a.RetryerV2.GetAttemptToken(ctx)
}

// IsErrorRetryable implements aws.Retryer.
func (a *attempts) IsErrorRetryable(err error) bool {
	return a.RetryerV2.IsErrorRetryable(err) || s3errors.Unreadable(err) && errors.Is(s3errors.FromSDK(err), syscall.EAGAIN)
}

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
