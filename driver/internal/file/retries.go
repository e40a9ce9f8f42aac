package file

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// retries is how often something was tried again. Its zero value is the one to begin with.
type retries struct {
	breaks int
	moved  int // bytes since the last
}

// progress says that bytes have come.
func (r *retries) progress(n int) {
	if r.breaks == 0 {
		return
	}
	if r.moved += n; r.moved >= forgiveness {
		*r = retries{}
	}
}

// pause waits before the next attempt after a temporary error, or returns why there must be none.
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
	// maxBreaks is how often in a row what S3 sends may break before reading fails. After each comes a request that
	// is itself repeated until S3 answers.
	maxBreaks = 4

	// breakDelay is waited after the second break in a row, and twice as long after each further: that, or up to half
	// as much more.
	breakDelay = 100 * time.Millisecond

	// forgiveness is how many bytes must come after a break for it not to count any more.
	forgiveness = 64 << 10
)
