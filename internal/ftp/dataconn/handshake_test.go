package dataconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// relayed is a connection by way of another server.
type relayed struct {
	net.Conn
	finished *atomic.Bool
}

func (r relayed) Finish() error {
	r.finished.Store(true)
	return nil
}

// A transfer that is stopped during the TLS handshake cuts its connection. It does not end it as if it were complete,
// which another goroutine would do while this one uses it.
func TestStopDuringAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		finished := &atomic.Bool{}
		transfer := NewTransfer(source{relayed{server, finished}}, Options{
			Settings: Settings{OpenTimeout: time.Minute, StallTimeout: time.Minute}, Upload: true, TLS: &tls.Config{},
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		conn, err := transfer.Open(ctx, func() {})
		must.OK(t, err)
		ended := make(chan error)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		cancel() // as a session does when it stops the transfer
		synctest.Wait()
		transfer.Stop(ErrAborted)
		if err := <-ended; err == nil || !errors.Is(transfer.Err(), ErrAborted) {
			t.Errorf("the upload ends with %v because of %v", err, transfer.Err())
		}
		if finished.Load() {
			t.Error("the connection was ended as if it were complete")
		}
	})
}

// A download by way of another server ends it when it is complete. One that has failed cuts it, so that the client does
// not take a part for the whole.
func TestEndOfARelayedDownload(t *testing.T) {
	for cause, complete := range map[error]bool{nil: true, ErrAborted: false} {
		server, client := net.Pipe()
		defer client.Close()
		finished := &atomic.Bool{}
		transfer := NewTransfer(source{relayed{server, finished}}, Options{
			Settings: Settings{OpenTimeout: time.Minute, StallTimeout: time.Minute},
		})
		conn, err := transfer.Open(t.Context(), func() {})
		must.OK(t, err)
		if cause != nil {
			transfer.Stop(cause)
		}
		_ = conn.Close()
		if finished.Load() != complete {
			t.Errorf("stopped by %v, the connection was ended as if it were complete: %t", cause, finished.Load())
		}
	}
}

// A source is a connection that is open.
type source struct{ conn net.Conn }

func (source) Waits() bool                              { return false }
func (s source) Open(context.Context) (net.Conn, error) { return s.conn, nil }
func (source) Close()                                   {}
