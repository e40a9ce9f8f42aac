package idle

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch ends a request when S3 has sent nothing for the timeout. The time of a pause does not count.
func TestWatch(t *testing.T) {
	const timeout = time.Minute
	synctest.Test(t, func(t *testing.T) {
		Pause(t.Context())() // no watch
		for label, test := range map[string]struct {
			do   func(ctx context.Context, w *Watch)
			want error
		}{
			"answered": {func(_ context.Context, w *Watch) {
				time.Sleep(timeout - 1)
				w.Stop()
				time.Sleep(timeout)
			}, io.EOF},
			"idle":      {func(context.Context, *Watch) { time.Sleep(timeout + 1) }, ErrIdle},
			"then-idle": {func(_ context.Context, w *Watch) { w.Stop(); w.Start(); time.Sleep(timeout + 1) }, ErrIdle},
			"waits": {func(ctx context.Context, _ *Watch) {
				resume := Pause(ctx)
				time.Sleep(2 * timeout)
				resume()
				time.Sleep(timeout - 1)
			}, io.EOF},
			"waits-and-idle": {func(ctx context.Context, _ *Watch) { Pause(ctx)(); time.Sleep(timeout + 1) }, ErrIdle},
		} {
			ctx, w := Begin(t.Context(), timeout)
			test.do(ctx, w)
			if err := w.Error(io.EOF); !errors.Is(err, test.want) ||
				(ctx.Err() != nil) != errors.Is(test.want, ErrIdle) {
				t.Errorf("%s: %v, want %v", label, err, test.want)
			}
			w.Close()
			if ctx.Err() == nil {
				t.Errorf("%s: the request goes on", label)
			}
		}
	})
}
