// Package idle ends requests to S3 that get nothing for a time. The time in which a request waits for its turn does
// not count.
//
// [Begin] makes the context of a request and a [Watch]. Who makes the request wait calls [Pause].
package idle

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrIdle says that S3 sent nothing for the timeout.
var ErrIdle = fmt.Errorf("S3 sent nothing for too long: %w", context.DeadlineExceeded)

// A Watch ends a request when S3 sends nothing for a timeout. Its methods are for one goroutine.
type Watch struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer // calls cancel
	timeout time.Duration
}

type contextKey struct{}

// Begin returns the context of a request that waits for S3 from now on. The caller ends it by [Watch.Close].
func Begin(ctx context.Context, timeout time.Duration) (context.Context, *Watch) {
	w := &Watch{timeout: timeout}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.ctx = ctx
	w.timer = time.AfterFunc(timeout, func() { w.cancel(ErrIdle) })
	return context.WithValue(ctx, contextKey{}, w), w
}

// Start waits for S3 again.
func (w *Watch) Start() { w.timer.Reset(w.timeout) }

// Stop says that S3 has sent something, or that no request waits for it.
func (w *Watch) Stop() { w.timer.Stop() }

// Close ends the request.
func (w *Watch) Close() {
	w.timer.Stop()
	w.cancel(nil)
}

// Error returns [ErrIdle] if that ended the request, and err otherwise.
func (w *Watch) Error(err error) error {
	if errors.Is(context.Cause(w.ctx), ErrIdle) {
		return ErrIdle
	}
	return err
}

// Pause stops the watch of a context that [Begin] has made, if it is one. resume starts it again.
func Pause(ctx context.Context) (resume func()) {
	w, ok := ctx.Value(contextKey{}).(*Watch)
	if !ok {
		return func() {}
	}
	w.Stop()
	return w.Start
}

// Progress returns a function that says that S3 has taken something of the request whose context [Begin] has made.
func Progress(ctx context.Context) func() {
	w, ok := ctx.Value(contextKey{}).(*Watch)
	if !ok {
		return func() {}
	}
	return w.Start
}
