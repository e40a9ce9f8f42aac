package file

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// retries counts interruptions of a read. The zero value is ready to use.
type retries struct {
	breaks int
	moved  int // bytes received since the last interruption
}

// progress records that n bytes have arrived.
func (r *retries) progress(n int) {
	if r.breaks == 0 {
		return
	}
	if r.moved += n; r.moved >= forgiveness {
		*r = retries{}
	}
}

// pause waits before the next attempt after a temporary error, or returns the error if there must be no other attempt.
func (r *retries) pause(ctx context.Context, err error) error {
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
	if s3api.Sleep(ctx, delay) != nil {
		return err
	}
	return nil
}

const (
	// maxBreaks is the number of consecutive interruptions of responses after which a read fails. Each new request
	// after an interruption is itself repeated until S3 responds.
	maxBreaks = 4

	// breakDelay is the pause after the second consecutive interruption. It doubles after each further one, and up to
	// half of it is added at random.
	breakDelay = 100 * time.Millisecond

	// forgiveness is the number of bytes after which earlier interruptions no longer count.
	forgiveness = 64 << 10
)
