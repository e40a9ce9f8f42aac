package s3api

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errIdle says that S3 sent nothing for the timeout.
var errIdle = fmt.Errorf("S3 sent nothing for too long: %w", context.DeadlineExceeded)

// An idleWatch ends a request when S3 sends nothing for a timeout. Its methods are for one goroutine.
type idleWatch struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer // calls cancel
	timeout time.Duration
}

type idleKey struct{}

// watchIdle returns the context of a request that waits for S3 from now on. The caller ends it by [idleWatch.Close].
func watchIdle(ctx context.Context, timeout time.Duration) (context.Context, *idleWatch) {
	w := &idleWatch{timeout: timeout}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.ctx = ctx
	w.timer = time.AfterFunc(timeout, func() { w.cancel(errIdle) })
	return context.WithValue(ctx, idleKey{}, w), w
}

// Start waits for S3 again.
func (w *idleWatch) Start() { w.timer.Reset(w.timeout) }

// Stop says that S3 has sent something, or that no request waits for it.
func (w *idleWatch) Stop() { w.timer.Stop() }

// Close ends the request.
func (w *idleWatch) Close() {
	w.timer.Stop()
	w.cancel(nil)
}

// Error returns [errIdle] if that ended the request, and err otherwise.
func (w *idleWatch) Error(err error) error {
	if errors.Is(context.Cause(w.ctx), errIdle) {
		return errIdle
	}
	return err
}

// pauseIdle stops the watch of a context that [watchIdle] has made, if it is one. resume starts it again.
func pauseIdle(ctx context.Context) (resume func()) {
	w, ok := ctx.Value(idleKey{}).(*idleWatch)
	if !ok {
		return func() {}
	}
	w.Stop()
	return w.Start
}

// idleProgress returns a function that says that S3 has taken something of the request whose context [watchIdle] has
// made.
func idleProgress(ctx context.Context) func() {
	w, ok := ctx.Value(idleKey{}).(*idleWatch)
	if !ok {
		return func() {}
	}
	return w.Start
}
