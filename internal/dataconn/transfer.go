package dataconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/limits"
)

// Why a transfer was stopped.
var (
	ErrAborted    = errors.New("aborted by the client")
	ErrStalled    = errors.New("the data connection stalled")
	ErrPeerClosed = errors.New("the control connection has ended")
	ErrLost       = errors.New("the data connection was lost")
	ErrTLS        = errors.New("no TLS on the data connection")
	ErrNotResumed = errors.New("the data connection did not resume the TLS session of the control connection")
)

// Settings are what all transfers of a server have in common. Ports and the times are required.
type Settings struct {
	Ports        *Ports        // of passive data connections
	OpenTimeout  time.Duration // until there is a connection
	StallTimeout time.Duration // until the next byte moves

	// MinRate is how many bytes the client of an upload must send in a minute while memory is scarce, 0 for no minimum.
	MinRate int64
}

// Options are what is known of a transfer before it begins.
type Options struct {
	Settings
	Upload bool
	// Scarce tells whether others wait for memory that this upload may hold. Nil means that they never do.
	Scarce func() bool
	// Listing writes what the client gets instead of a file; nil for a file.
	Listing func(io.Writer) error
	// TLS is nil for a data connection in the clear.
	TLS       *tls.Config
	Handshake Handshake // that of the control connection
	// RequireReuse refuses a data connection that does not resume the TLS session of the control connection (RFC 4217 10.2).
	RequireReuse bool
	// ControlTLS says whether the control connection is under TLS.
	ControlTLS bool
	// LenientEOF accepts an upload under TLS that ends without close_notify.
	LenientEOF bool
	Pace       limits.Pace // bytes a second
}

// A Transfer is one use of a data connection, for a file or a listing.
type Transfer struct {
	Options
	source Source
	bytes  atomic.Int64

	mu    sync.Mutex
	cause error       // the first reason to fail that is not the storage's
	abort func(error) // of the file, nil until it is open
	conn  *Conn       // nil until open
}

// NewTransfer makes a transfer of a data connection that source opens.
func NewTransfer(source Source, options Options) *Transfer {
	return &Transfer{Options: options, source: source}
}

// Bytes is how many bytes of the file or listing have been moved.
func (t *Transfer) Bytes() int64 { return t.bytes.Load() }

// Opened remembers how to abort the file, so that a stop need not wait for S3.
func (t *Transfer) Opened(abort func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.abort = abort
	if t.cause != nil {
		abort(t.cause)
	}
}

// Open waits for the data connection. The engine calls it through its listener
// when the file has been opened.
func (t *Transfer) Open(ctx context.Context) (net.Conn, error) {
	if err := t.Err(); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, t.OpenTimeout)
	defer cancel()
	conn, err := t.source.Open(waiting)
	if err != nil {
		return nil, fmt.Errorf("open the data connection: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		_ = conn.Close()
		return nil, t.cause
	}
	t.conn = newConn(ctx, t, conn)
	return t.conn, nil
}

// Stop ends a transfer for a reason. It may be called at any time, by any
// goroutine, and for no transfer at all.
func (t *Transfer) Stop(cause error) {
	if t == nil {
		return
	}
	t.fail(cause)
	t.source.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.abort != nil {
		t.abort(cause)
	}
	if t.conn != nil {
		_ = t.conn.raw.Close()
	}
}

// fail notes a reason; the first one counts.
func (t *Transfer) fail(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		t.cause = cause
	}
}

// Err is why the transfer was stopped, or its data connection failed.
func (t *Transfer) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}
