package dataconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
)

// Reasons why a transfer was stopped.
var (
	ErrAborted    = errors.New("aborted by the client")
	ErrStalled    = errors.New("the data connection stalled")
	ErrPeerClosed = errors.New("the control connection has ended")
	// ErrDisconnected wraps [context.Canceled], so that a transfer ends as in a shutdown.
	ErrDisconnected = fmt.Errorf("an administrator ended the session: %w", context.Canceled)
	ErrLost         = errors.New("the data connection was lost")
	ErrTLS          = errors.New("no TLS on the data connection")
	ErrNotResumed   = errors.New("the data connection did not resume the TLS session of the control connection")
	errCut          = fmt.Errorf("%w: it ended without close_notify of TLS, see tls.strict_data_eof", ErrLost)
)

// Config holds the limits for all transfers of a server. The timeouts are required.
type Config struct {
	OpenTimeout  time.Duration // until the connection is open
	StallTimeout time.Duration // until the next byte is transferred

	// MinRate is the minimum rate of an upload in bytes per minute while its resources are contended; 0 means no
	// minimum.
	MinRate int64
}

// Options configure a transfer.
type Options struct {
	Config
	Upload  bool
	Listing bool // transfer a listing, not a file
	// Contended reports whether other sessions wait for resources that this upload holds: memory or a transfer
	// slot. If nil, they never do.
	Contended func() bool
	// TLS is nil for a data connection without TLS.
	TLS       *tls.Config
	Handshake Handshake // handshake of the control connection
	// RequireReuse refuses data connections that do not resume the TLS session of the control connection (RFC
	// 4217, 10.2).
	RequireReuse bool
	// ControlTLS is set if the control connection uses TLS.
	ControlTLS bool
	// LenientEOF accepts uploads whose TLS connection ends without close_notify.
	LenientEOF bool
	Pace       limits.Pace // in bytes per second
}

// A Transfer is one use of a data connection, for a file or a listing.
type Transfer struct {
	Options
	// Memory returns the bytes of memory of the upload part that the client is sending. It is set when the file is
	// opened, before the first read, and nil for other transfers.
	Memory func() int64

	source    Source
	began     time.Time
	bytes     atomic.Int64
	firstByte atomic.Int64 // nanoseconds since began, 0 until then
	size      atomic.Int64 // SetSize plus one, 0 if unknown

	mu       sync.Mutex
	complete bool        // the result is final
	cause    error       // first failure outside the storage
	storage  error       // first error passed to StorageFailed
	broken   bool        // Break was called
	open     error       // why the data connection was not opened
	taken    bool        // Open was called
	abort    func(error) // aborts the open file, may be nil
	conn     *Conn       // nil until open
}

// A Result is the progress or the end of a transfer. The outcome of a command is made from it and not from the
// reply of ftpserverlib, which reports a download as complete even if closing the data connection failed.
type Result struct {
	// Complete is set when an upload is in S3, or when a download or a listing was sent completely. If the data
	// connection is relayed by another replica, that replica has delivered it to the client.
	Complete bool
	// Connection is the reason why the transfer was stopped, or why its data connection failed or could not be
	// opened.
	Connection error
	// Storage is the error of the storage. Often one of the two errors is caused by the other.
	Storage error
}

// NewTransfer returns a transfer that uses the data connection of source.
func NewTransfer(source Source, options Options) *Transfer {
	return &Transfer{Options: options, source: source, began: time.Now()}
}

// Bytes returns the number of bytes transferred so far.
func (t *Transfer) Bytes() int64 { return t.bytes.Load() }

// SetSize sets the expected number of bytes.
func (t *Transfer) SetSize(bytes int64) { t.size.Store(bytes + 1) }

// Size returns the expected number of bytes, if SetSize was called.
func (t *Transfer) Size() (bytes int64, known bool) {
	n := t.size.Load()
	return max(0, n-1), n > 0
}

// addBytes counts transferred bytes.
func (t *Transfer) addBytes(n int) {
	if t.bytes.Add(int64(n)) == int64(n) && n > 0 {
		t.firstByte.Store(int64(time.Since(t.began)))
	}
}

// Elapsed returns the time since the command was received.
func (t *Transfer) Elapsed() time.Duration { return time.Since(t.began) }

// FirstByte returns the time from the command to the first byte on the data connection, or 0 before that.
func (t *Transfer) FirstByte() time.Duration { return time.Duration(t.firstByte.Load()) }

// Direction returns "upload", "download" or "listing".
func (t *Transfer) Direction() string {
	switch {
	case t.Listing:
		return "listing"
	case t.Upload:
		return "upload"
	}
	return "download"
}

// Opened sets the function that aborts the open file, so that Stop does not have to wait for S3.
func (t *Transfer) Opened(abort func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.abort = abort
	if t.cause != nil {
		abort(t.cause)
	}
}

// Open opens the data connection. It calls starting once, as soon as reply 150 may be sent. If the client has not
// connected to the passive port yet, Open calls starting before it waits, because the client may wait for 150 (RFC 959,
// 5.4). Otherwise it opens the connection first. TLS always starts after 150, because many clients expect that.
func (t *Transfer) Open(ctx context.Context, starting func()) (*Conn, error) {
	if err := t.take(); err != nil {
		return nil, err
	}
	waits := t.source.Waits()
	if waits {
		starting()
	}
	waiting, cancel := context.WithTimeout(ctx, t.OpenTimeout)
	defer cancel()
	conn, err := t.source.Open(waiting)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.open = err
		return nil, fmt.Errorf("open the data connection: %w", err)
	}
	if t.cause != nil {
		_ = conn.Close()
		return nil, t.cause
	}
	t.conn = newConn(ctx, t, conn)
	if !waits {
		starting()
	}
	return t.conn, nil
}

// Send opens the data connection like Open, calls write to send a listing, and closes the connection. It returns
// the first error.
func (t *Transfer) Send(ctx context.Context, starting func(), write func(io.Writer) error) error {
	conn, err := t.Open(ctx, starting)
	if err != nil {
		return err
	}
	if err = conn.handshake(); err == nil { // the client waits for it even if the listing is empty
		err = write(conn)
	}
	if err != nil {
		t.Break()
	}
	return cmp.Or(err, conn.Close())
}

// Connected reports whether the data connection was opened.
func (t *Transfer) Connected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conn != nil
}

// take marks the source as used. It returns an error if the transfer was stopped.
func (t *Transfer) take() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = true
	return t.cause
}

// used reports whether the source cannot be used by another transfer.
func (t *Transfer) used() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken || t.cause != nil
}

// Stop ends the transfer with a cause. It may be called at any time, by any goroutine.
func (t *Transfer) Stop(cause error) {
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

// fail records a cause. Only the first cause counts, and none after the transfer is complete.
func (t *Transfer) fail(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil && !t.complete {
		t.cause = cause
	}
}

// StorageFailed records an error of the storage. Only the first error counts.
func (t *Transfer) StorageFailed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.storage == nil && !t.complete {
		t.storage = err
	}
}

// Break marks the transfer as incomplete, for a reason that is already recorded or unknown.
func (t *Transfer) Break() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = true
}

// Stored records that an upload is in S3.
func (t *Transfer) Stored() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete = true
}

// setComplete records that a download or a listing was sent completely, unless something has failed.
func (t *Transfer) setComplete() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete = !t.failed()
}

// failed reports whether anything has failed. The mutex must be locked.
func (t *Transfer) failed() bool { return t.cause != nil || t.storage != nil || t.broken }

// partial reports whether the client of a download or a listing may have got only a part.
func (t *Transfer) partial() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.Upload && t.failed()
}

// Result returns the result. It does not change once the transfer is complete.
func (t *Transfer) Result() Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Result{Complete: t.complete, Connection: cmp.Or(t.cause, t.open), Storage: t.storage}
}

// Err returns the reason why the transfer was stopped or its data connection failed.
func (t *Transfer) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}
