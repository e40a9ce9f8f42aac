package s3api

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// attempts counts the attempts of the SDK for one request. The SDK repeats a request without an answer, with an answer of an overloaded S3,
// and with one that ends early or that it cannot read. So attempts are for requests that may be made twice.
type attempts struct {
	aws.RetryerV2
	begun time.Time // where an object that is older cannot be what they have made; zero where it can
	count int
}

// countAttempts is an option of the request.
func (a *attempts) countAttempts(o *s3.Options) {
	if retryer, ok := o.Retryer.(aws.RetryerV2); ok {
		a.RetryerV2, o.Retryer = retryer, a
	}
}

// repeatable is the option of a request whose attempts the caller does not count.
func repeatable(o *s3.Options) { new(attempts).countAttempts(o) }

// GetAttemptToken implements aws.RetryerV2. The SDK calls it before each attempt.
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
