// Package inspect inspects files while they are uploaded, for example for viruses. The inspector is a clamd (command
// INSTREAM), an ICAP server (RFC 3507) or an HTTP server that gets the bytes with a POST request.
//
// For each upload, [Inspector.Begin] returns a [File]:
//
//	f := inspector.Begin(ctx, "/invoices/1.pdf")
//	defer f.Close()
//	if _, err := io.Copy(f, upload); err != nil {
//		return err // the inspector rejected the file early, or failed
//	}
//	err := f.Verdict() // nil: accepted; a *Refusal: refused; otherwise ErrNotInspected
//
// Write sends the bytes on as fast as the inspector accepts them and buffers none, so a slow inspector slows down the
// client but uses no memory.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
)

// ErrNotInspected is wrapped by the error for a file that could not be inspected.
var ErrNotInspected = errors.New("the inspector returned no verdict")

const (
	// bufferSize is the maximum number of bytes that are sent at once. Each inspection uses one such buffer.
	bufferSize = 32 << 10

	// redialAfter is the delay before the next attempt if the queue of a Unix socket is full.
	redialAfter = 10 * time.Millisecond

	// maxResponse is the maximum number of bytes of a response, or of its headers if the file follows them.
	maxResponse = 64 << 10
)

// errEarly is the error for an inspector that accepts a file before it has received all of it.
var errEarly = errors.New("the inspector accepted the file before the last byte")

// errClosed cancels the inspection of a file whose upload has ended.
var errClosed = errors.New("the upload has ended")

// refuse returns the Refusal of a file because of a signature or a threat with this name.
func refuse(name string) error { return &Refusal{Reason: map[string]string{"": name}} }

// An Inspector inspects files. It is safe for concurrent use.
type Inspector struct {
	// inspect reads a file to its end, or until it is refused. It returns nil if the file is accepted, a Refusal if it
	// is refused, and another error if the inspection failed.
	inspect func(ctx context.Context, name string, r io.Reader) error
}

// Probe inspects a small harmless file, and returns an error if the inspection failed. It ignores a refusal.
func (i *Inspector) Probe(ctx context.Context) error {
	f := i.Begin(ctx, "/babelftp-probe.txt")
	defer f.Close()
	if _, err := f.Write([]byte("babelftp\n")); err != nil && !errors.Is(err, ErrRefused) {
		return err
	}
	if err := f.Verdict(); !errors.Is(err, ErrRefused) {
		return err
	}
	return nil
}

// A File is a file being inspected. It must be used by one goroutine only.
type File struct {
	ctx     context.Context
	bytes   *io.PipeWriter
	cancel  context.CancelFunc
	ended   <-chan error
	verdict error
	decided bool // verdict is set
}

// Begin starts the inspection of the file with this pathname. The inspection ends with ctx. The caller must close the
// File.
func (i *Inspector) Begin(ctx context.Context, name string) *File {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) })
	source := &source{r: r}
	return &File{ctx: ctx, bytes: w, cancel: cancel, ended: panics.Start(func() (err error) {
		defer func() {
			stop()
			_ = r.CloseWithError(errClosed) // makes current and later calls of Write fail
		}()
		err = panics.Catch(func() error { return i.inspect(ctx, name, source) })
		if err == nil && !source.ended.Load() {
			err = errEarly
		}
		if _, refused := errors.AsType[*Refusal](err); err != nil && !refused {
			err = fmt.Errorf("%w: %v", ErrNotInspected, err) //nolint:errorlint // its errno is not from S3
		}
		return err
	})}
}

// Write sends bytes to the inspector, and waits until it has accepted them. If the inspector refuses the file or fails
// before the last byte, Write returns the error of Verdict.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.bytes.Write(p)
	if err != nil {
		if verdict := f.wait(); verdict != nil {
			err = verdict
		}
	}
	return n, err
}

// Verdict must be called after the last byte. It returns nil if the inspector accepts the file, a [Refusal] if it
// refuses the file, and an error that wraps [ErrNotInspected] if the inspection failed.
func (f *File) Verdict() error {
	_ = f.bytes.CloseWithError(context.Cause(f.ctx)) // nil: the end of the file
	return f.wait()
}

// Close ends the inspection and waits until the connection is closed. If Verdict has not been called, the inspector
// never receives the end of the file, and the file counts as refused.
func (f *File) Close() {
	_ = f.bytes.CloseWithError(errClosed)
	f.cancel()
	_ = f.wait()
}

func (f *File) wait() error {
	if !f.decided {
		f.verdict, f.decided = <-f.ended, true
		f.cancel()
	}
	return f.verdict
}

// A source is a Reader that records whether it was read to the end. An inspector that responds before that cannot have
// received the whole file.
type source struct {
	r     io.Reader
	ended atomic.Bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if errors.Is(err, io.EOF) {
		s.ended.Store(true)
	}
	return n, err
}

// A dialer connects to an inspector. Writes to its connections time out.
type dialer struct {
	network, address string
	timeout          time.Duration
}

func (d dialer) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, d.network, d.address)
		if err == nil {
			return &timedConn{conn, d.timeout}, nil
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, err
		}
		// The queue of the Unix socket is full.
		select {
		case <-time.After(redialAfter):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// exchange sends a file and receives the response at the same time, because some inspectors respond before the last
// byte. Otherwise the response must arrive within the timeout after the last byte. A response counts even if the
// inspector has not accepted the rest of the file.
func (d dialer) exchange(ctx context.Context, send, receive func(net.Conn) error) error {
	conn, err := d.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	sent := panics.Start(func() error {
		err := send(conn)
		_ = conn.SetReadDeadline(time.Now().Add(d.timeout))
		return err
	})
	err = receive(conn)
	if _, refused := errors.AsType[*Refusal](err); err == nil || refused || ctx.Err() != nil {
		return err
	}
	select {
	case failed := <-sent:
		return errors.Join(err, failed)
	default:
		return err
	}
}

// A timedConn is a connection with a timeout for each Write.
type timedConn struct {
	net.Conn
	timeout time.Duration
}

func (c *timedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
