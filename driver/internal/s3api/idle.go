package s3api

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errIdle reports that S3 sent nothing for the timeout.
var errIdle = fmt.Errorf("S3 made no progress before the timeout: %w", context.DeadlineExceeded)

// An idleWatch cancels a request when S3 sends nothing for a timeout. Its methods must be called from one goroutine.
type idleWatch struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer // calls cancel
	timeout time.Duration
}

type idleKey struct{}

// watchIdle returns a context for a request and starts its watch. The caller must call [idleWatch.Close].
func watchIdle(ctx context.Context, timeout time.Duration) (context.Context, *idleWatch) {
	w := &idleWatch{timeout: timeout}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.ctx = ctx
	w.timer = time.AfterFunc(timeout, func() { w.cancel(errIdle) })
	return context.WithValue(ctx, idleKey{}, w), w
}

// Start starts or restarts the timeout.
func (w *idleWatch) Start() { w.timer.Reset(w.timeout) }

// Stop pauses the watch, because S3 has sent something or no request is waiting for it.
func (w *idleWatch) Stop() { w.timer.Stop() }

// Close ends the watch and cancels the request.
func (w *idleWatch) Close() {
	w.timer.Stop()
	w.cancel(nil)
}

// Error returns [errIdle] if the watch canceled the request, and err otherwise.
func (w *idleWatch) Error(err error) error {
	if errors.Is(context.Cause(w.ctx), errIdle) {
		return errIdle
	}
	return err
}

// pauseIdle pauses the watch of a context made by [watchIdle], if it has one, and returns a function that resumes it.
func pauseIdle(ctx context.Context) (resume func()) {
	w, ok := ctx.Value(idleKey{}).(*idleWatch)
	if !ok {
		return func() {}
	}
	w.Stop()
	return w.Start
}

// idleProgress returns a function to call when S3 has read a part of the request body. It restarts the timeout of the
// context's watch, if there is one.
func idleProgress(ctx context.Context) func() {
	w, ok := ctx.Value(idleKey{}).(*idleWatch)
	if !ok {
		return func() {}
	}
	return w.Start
}
