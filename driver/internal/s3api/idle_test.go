package s3api

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestIdleWatch cancels a request when S3 has sent nothing for the timeout. Pauses do not count.
func TestIdleWatch(t *testing.T) {
	const timeout = time.Minute
	synctest.Test(t, func(t *testing.T) {
		pauseIdle(t.Context())() // a context without a watch
		for label, test := range map[string]struct {
			do   func(ctx context.Context, w *idleWatch)
			want error
		}{
			"answered": {func(_ context.Context, w *idleWatch) {
				time.Sleep(timeout - 1)
				w.Stop()
				time.Sleep(timeout)
			}, io.EOF},
			"idle":      {func(context.Context, *idleWatch) { time.Sleep(timeout + 1) }, errIdle},
			"then-idle": {func(_ context.Context, w *idleWatch) { w.Stop(); w.Start(); time.Sleep(timeout + 1) }, errIdle},
			"waits": {func(ctx context.Context, _ *idleWatch) {
				resume := pauseIdle(ctx)
				time.Sleep(2 * timeout)
				resume()
				time.Sleep(timeout - 1)
			}, io.EOF},
			"waits-and-idle": {func(ctx context.Context, _ *idleWatch) { pauseIdle(ctx)(); time.Sleep(timeout + 1) }, errIdle},
		} {
			ctx, w := watchIdle(t.Context(), timeout)
			test.do(ctx, w)
			if err := w.Error(io.EOF); !errors.Is(err, test.want) ||
				(ctx.Err() != nil) != errors.Is(test.want, errIdle) {
				t.Errorf("%s: got %v, want %v", label, err, test.want)
			}
			w.Close()
			if ctx.Err() == nil {
				t.Errorf("%s: the request continues", label)
			}
		}
	})
}
