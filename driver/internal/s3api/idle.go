package s3api

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrIdle says that S3 sent nothing for the timeout.
var ErrIdle = fmt.Errorf("S3 sent nothing for too long: %w", context.DeadlineExceeded)

// An IdleWatch ends a request when S3 sends nothing for a timeout. Its methods are for one goroutine.
type IdleWatch struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer // calls cancel
	timeout time.Duration
}

type idleKey struct{}

// WatchIdle returns the context of a request that waits for S3 from now on. The caller ends it by [IdleWatch.Close].
func WatchIdle(ctx context.Context, timeout time.Duration) (context.Context, *IdleWatch) {
	w := &IdleWatch{timeout: timeout}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.ctx = ctx
	w.timer = time.AfterFunc(timeout, func() { w.cancel(ErrIdle) })
	return context.WithValue(ctx, idleKey{}, w), w
}

// Start waits for S3 again.
func (w *IdleWatch) Start() { w.timer.Reset(w.timeout) }

// Stop says that S3 has sent something, or that no request waits for it.
func (w *IdleWatch) Stop() { w.timer.Stop() }

// Close ends the request.
func (w *IdleWatch) Close() {
	w.timer.Stop()
	w.cancel(nil)
}

// Error returns [ErrIdle] if that ended the request, and err otherwise.
func (w *IdleWatch) Error(err error) error {
	if errors.Is(context.Cause(w.ctx), ErrIdle) {
		return ErrIdle
	}
	return err
}

// PauseIdle stops the watch of a context that [WatchIdle] has made, if it is one. resume starts it again.
func PauseIdle(ctx context.Context) (resume func()) {
	w, ok := ctx.Value(idleKey{}).(*IdleWatch)
	if !ok {
		return func() {}
	}
	w.Stop()
	return w.Start
}

// idleProgress returns a function that says that S3 has taken something of the request whose context [WatchIdle] has
// made.
func idleProgress(ctx context.Context) func() {
	w, ok := ctx.Value(idleKey{}).(*IdleWatch)
	if !ok {
		return func() {}
	}
	return w.Start
}
