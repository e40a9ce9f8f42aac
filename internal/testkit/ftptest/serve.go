package ftptest

import (
	"context"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Serve starts a server and serves until the end of the test. Transfers that still run are aborted then.
func Serve(tb testing.TB, srv interface {
	Start(ctx context.Context) error
	Serve(ctx context.Context) error
	Shutdown(ctx context.Context) error
}) {
	tb.Helper()
	must.OK(tb, srv.Start(tb.Context()))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.WithoutCancel(tb.Context())) }()
	tb.Cleanup(func() {
		_ = srv.Shutdown(tb.Context()) // the context has expired, so this stops at once
		if err := <-served; err != nil {
			tb.Errorf("Serve: %v", err)
		}
	})
}
