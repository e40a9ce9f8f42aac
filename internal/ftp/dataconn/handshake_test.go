package dataconn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// relayed is a data connection that another replica relays.
type relayed struct {
	net.Conn
	received, finished *atomic.Bool
	err                error // returned by Finish
}

func (r relayed) Received() { r.received.Store(true) }

func (r relayed) Finish() error {
	r.finished.Store(true)
	return r.err
}

// If a transfer is stopped during the TLS handshake, its connection is cut. No other goroutine may end it like a
// complete transfer.
func TestStopDuringAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		finished := &atomic.Bool{}
		transfer := NewTransfer(source{relayed{server, &atomic.Bool{}, finished, nil}}, Options{
			Config: Config{OpenTimeout: time.Minute, StallTimeout: time.Minute}, Upload: true, TLS: &tls.Config{},
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
		cancel() // like a session that stops the transfer
		synctest.Wait()
		transfer.Stop(ErrAborted)
		if err := <-ended; err == nil || !errors.Is(transfer.Err(), ErrAborted) {
			t.Errorf("unexpected end of the upload: %v, cause %v", err, transfer.Err())
		}
		if finished.Load() {
			t.Error("the connection was closed as if the transfer were complete")
		}
	})
}

// A complete transfer finishes its relay. A failed download and an incomplete upload cut it, so that the client
// does not take a part of a file for the whole. A download fails if the relay ends before the client has received
// everything.
func TestEndOfARelayedTransfer(t *testing.T) {
	killed := errors.New("killed")
	for name, tc := range map[string]struct {
		upload, ended      bool
		stop, finish, want error
		finished           bool
	}{
		"complete":        {finished: true},
		"aborted":         {stop: ErrAborted, want: ErrAborted},
		"killed":          {finish: killed, want: ErrLost, finished: true},
		"upload":          {upload: true},
		"complete-upload": {upload: true, ended: true, finished: true},
	} {
		server, client := net.Pipe()
		defer client.Close()
		received, finished := &atomic.Bool{}, &atomic.Bool{}
		transfer := NewTransfer(source{relayed{server, received, finished, tc.finish}}, Options{
			Config: Config{OpenTimeout: time.Minute, StallTimeout: time.Minute}, Upload: tc.upload,
		})
		conn, err := transfer.Open(t.Context(), func() {})
		must.OK(t, err)
		if tc.stop != nil {
			transfer.Stop(tc.stop)
		}
		if tc.ended {
			_ = client.Close()
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("%s: unexpected end of the upload: %v", name, err)
			}
		}
		_ = conn.Close()
		if received.Load() != tc.ended {
			t.Errorf("%s: received = %t", name, received.Load())
		}
		if finished.Load() != tc.finished || !errors.Is(transfer.Err(), tc.want) {
			t.Errorf("%s: finished = %t, error %v", name, finished.Load(), transfer.Err())
		}
	}
}

// A source provides an open connection.
type source struct{ conn net.Conn }

func (source) Waits() bool                              { return false }
func (source) Missing() error                           { return nil }
func (s source) Open(context.Context) (net.Conn, error) { return s.conn, nil }
func (source) Close()                                   {}
