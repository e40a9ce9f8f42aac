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

// Why a transfer was stopped.
var (
	ErrAborted    = errors.New("aborted by the client")
	ErrStalled    = errors.New("the data connection stalled")
	ErrPeerClosed = errors.New("the control connection has ended")
	// ErrDisconnected is a [context.Canceled], so that a transfer ends as with the server.
	ErrDisconnected = fmt.Errorf("an administrator has ended the session: %w", context.Canceled)
	ErrLost         = errors.New("the data connection was lost")
	ErrTLS          = errors.New("no TLS on the data connection")
	ErrNotResumed   = errors.New("the data connection did not resume the TLS session of the control connection")
	errCut          = fmt.Errorf("%w: it ended without close_notify of TLS, see tls.strict_data_eof", ErrLost)
)

// Settings are what all transfers of a server have in common. The times are required.
type Settings struct {
	OpenTimeout  time.Duration // until there is a connection
	StallTimeout time.Duration // until the next byte moves

	// MinRate is how many bytes the client of an upload must send in a minute while Scarce, 0 for no minimum.
	MinRate int64
}

// Options are what is known of a transfer before it begins.
type Options struct {
	Settings
	Upload  bool
	Listing bool // sent instead of a file
	// Scarce tells whether others need what this upload holds, or may hold: memory, or a place among the transfers. Nil
	// means that they never do.
	Scarce func() bool
	// TLS is nil for a data connection in the clear.
	TLS       *tls.Config
	Handshake Handshake // that of the control connection
	// RequireReuse refuses a data connection that does not resume the TLS session of the control connection (RFC 4217
	// 10.2).
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
	// Memory is how many bytes of memory the part of an upload has that its client is sending. It is set when the
	// file is open, before the first read, and nil for others.
	Memory func() int64

	source    Source
	began     time.Time
	bytes     atomic.Int64
	firstByte atomic.Int64 // nanoseconds from began, 0 before
	size      atomic.Int64 // of SetSize, and one more; 0 before

	mu       sync.Mutex
	complete bool        // the result is final
	cause    error       // the first failure outside the storage
	storage  error       // the first of StorageFailed
	broken   bool        // of Break
	open     error       // why no data connection opened
	taken    bool        // by Open
	abort    func(error) // of the open file, or nil
	conn     *Conn       // nil until open
}

// A Result is how a transfer has ended, or how far it has come. The outcome of its command is made of it, and of
// nothing that the FTP engine says, which calls a download complete although the end of the data connection has failed.
type Result struct {
	// Complete means that an upload is in S3, or that all of a download or a listing has left by the data connection.
	// Where that leads by way of another server, the client's side of that server has all of it.
	Complete bool
	// Connection is why the transfer was stopped, or why its data connection failed or did not come about.
	Connection error
	// Storage is why the storage failed. Often the one error follows from the other.
	Storage error
}

// NewTransfer makes a transfer of a data connection that source opens.
func NewTransfer(source Source, options Options) *Transfer {
	return &Transfer{Options: options, source: source, began: time.Now()}
}

// Bytes is how many bytes of the file or listing have been moved.
func (t *Transfer) Bytes() int64 { return t.bytes.Load() }

// SetSize says how many bytes will be moved, if nothing fails.
func (t *Transfer) SetSize(bytes int64) { t.size.Store(bytes + 1) }

// Size is what SetSize has said. known is false where it was not called.
func (t *Transfer) Size() (bytes int64, known bool) {
	n := t.size.Load()
	return max(0, n-1), n > 0
}

// moved counts bytes.
func (t *Transfer) moved(n int) {
	if t.bytes.Add(int64(n)) == int64(n) && n > 0 {
		t.firstByte.Store(int64(time.Since(t.began)))
	}
}

// Elapsed is the time since the command came.
func (t *Transfer) Elapsed() time.Duration { return time.Since(t.began) }

// FirstByte is the time from the command to the first byte on the data connection, 0 while none has moved.
func (t *Transfer) FirstByte() time.Duration { return time.Duration(t.firstByte.Load()) }

// Direction is upload, download or listing.
func (t *Transfer) Direction() string {
	switch {
	case t.Listing:
		return "listing"
	case t.Upload:
		return "upload"
	}
	return "download"
}

// Opened remembers how to abort the file, so that a stop need not wait for S3.
func (t *Transfer) Opened(abort func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.abort = abort
	if t.cause != nil {
		abort(t.cause)
	}
}

// Open waits for the data connection. It calls starting once, when the client may get 150: before it waits for a client
// that has not connected to the passive port, because such a client may wait for 150 (RFC 959 5.4), and otherwise when
// the connection is open. TLS has not begun then, because many clients begin it only after 150.
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

// Send opens the data connection, as Open does, lets write send a listing over it, and closes it. The error is the
// first one of these.
func (t *Transfer) Send(ctx context.Context, starting func(), write func(io.Writer) error) error {
	conn, err := t.Open(ctx, starting)
	if err != nil {
		return err
	}
	if err = conn.handshake(); err == nil { // a client waits for it even if nothing follows
		err = write(conn)
	}
	if err != nil {
		t.Break()
	}
	return cmp.Or(err, conn.Close())
}

// Connected reports whether the data connection has opened.
func (t *Transfer) Connected() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conn != nil
}

// take notes that the source can serve no other transfer. The error is why this one was stopped.
func (t *Transfer) take() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = true
	return t.cause
}

// used says whether the source can serve no other transfer.
func (t *Transfer) used() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken || t.cause != nil
}

// Stop ends a transfer for a reason. It may be called at any time, by any
// goroutine.
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

// fail notes a reason; the first one counts. What stops a transfer that is complete comes too late.
func (t *Transfer) fail(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil && !t.complete {
		t.cause = cause
	}
}

// StorageFailed notes an error of the storage; the first one counts.
func (t *Transfer) StorageFailed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.storage == nil && !t.complete {
		t.storage = err
	}
}

// Break notes that the transfer cannot be complete, for a reason that is noted already, or that is unknown.
func (t *Transfer) Break() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = true
}

// Stored notes that an upload is in S3.
func (t *Transfer) Stored() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete = true
}

// delivered notes that all of a download or a listing has left, unless something has failed before.
func (t *Transfer) delivered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complete = !t.failed()
}

// failed says whether anything has failed. The mutex is locked.
func (t *Transfer) failed() bool { return t.cause != nil || t.storage != nil || t.broken }

// partial says whether the client of a download or a listing may have got less than all.
func (t *Transfer) partial() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.Upload && t.failed()
}

// Result is how the transfer has ended. It does not change once it is complete.
func (t *Transfer) Result() Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Result{Complete: t.complete, Connection: cmp.Or(t.cause, t.open), Storage: t.storage}
}

// Err is why the transfer was stopped, or its data connection failed.
func (t *Transfer) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}
