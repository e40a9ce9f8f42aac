package serve

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/server"
)

// Signals returns a context that is canceled by the first SIGINT or SIGTERM, and one that is canceled by
// the second.
func Signals(parent context.Context) (first, second context.Context, stop func()) {
	first, endFirst := context.WithCancel(parent)
	second, endSecond := context.WithCancel(context.WithoutCancel(parent))
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	panics.Go(func() {
		select {
		case <-received:
			endFirst()
		case <-first.Done():
		}
		select {
		case <-received:
			endSecond()
		case <-second.Done():
		}
	})
	return first, second, func() {
		signal.Stop(received)
		endFirst()
		endSecond()
	}
}

// Until starts srv, calls started, and serves until ctx is canceled. Running transfers may then continue
// for drain_timeout, unless now is canceled first.
func Until(ctx, now context.Context, srv *server.Server, log *slog.Logger, started func()) error {
	if err := srv.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped during the start
		}
		return err
	}
	started()
	notify := func(state string) {
		if err := notifySystemd(state); err != nil {
			log.Warn("systemd notification failed; check NOTIFY_SOCKET",
				"state", state, "err", err)
		}
	}
	notify(serviceReady)
	served := make(chan error, 1)
	panics.Go(func() { served <- srv.Serve(now) })
	select {
	case <-ctx.Done():
	case err := <-served:
		served <- err
	}
	notify(serviceStopping)
	drain := srv.DrainTimeout()
	log.Info("stopping", "drain_timeout", drain)
	draining, cancel := context.WithTimeout(now, drain)
	defer cancel()
	if err := srv.Shutdown(draining); err != nil {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			return errors.Join(<-served, err)
		}
		log.Warn("transfers aborted by a second signal or at the end of drain_timeout",
			"err", err)
	}
	err := <-served
	log.Info("stopped")
	return err
}
