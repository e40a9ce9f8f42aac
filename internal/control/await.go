package control

import (
	"context"

	"github.com/babelftp/babelftp/internal/dataconn"
	"github.com/babelftp/babelftp/internal/wire"
)

// await does what may take long and is not the engine's. Meanwhile ABOR ends
// it, and so does the end of the control connection; other commands wait.
func (s *session) await(work func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	done, panicked := make(chan error, 1), make(chan any, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				panicked <- r
			}
		}()
		done <- work(ctx)
	}()
	gone, incoming := s.conn.PeerClosed(), s.conn.Lines()
	for {
		lines := incoming
		if len(s.waiting) >= maxWaiting {
			lines = nil
		}
		select {
		case err := <-done:
			cause := context.Cause(ctx)
			if err == nil || cause == nil {
				return err
			}
			s.aborted = cause == dataconn.ErrAborted //nolint:errorlint // it is the cause itself
			return cause
		case r := <-panicked:
			panic(r) // ends this session only
		case l, ok := <-lines:
			if !ok {
				incoming = nil
				continue
			}
			if verb, _, hasArg := wire.ParseCommand(l.Text); verb == "ABOR" && !hasArg {
				cancel(dataconn.ErrAborted)
			}
			s.waiting = append(s.waiting, l)
		case <-gone:
			gone = nil
			cancel(dataconn.ErrPeerClosed)
		}
	}
}
