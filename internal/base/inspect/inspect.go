// Package inspect has files judged while they are uploaded: by clamd (command INSTREAM), by an ICAP server (RFC 3507),
// or by a hook that gets the bytes by HTTP.
//
// An [Inspector] begins a [File] for each upload. Its Write passes bytes on as fast as the inspector takes them, and
// keeps none. So a slow inspector slows the client down, and takes no memory. Its Verdict follows the last byte.
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

// ErrUnjudged is the error of a file that could not be judged, wrapped.
var ErrUnjudged = errors.New("the inspector could not judge the file")

const (
	// bufferSize is how many bytes of a file are sent at once. Each upload that is judged has one such buffer.
	bufferSize = 32 << 10

	// redialAfter is how long a file waits for a place in the queue of a Unix socket until it tries again.
	redialAfter = 10 * time.Millisecond

	// maxAnswer is how many bytes an answer may have, or its headers where the file follows.
	maxAnswer = 64 << 10
)

// errEarly is why an inspector that accepts a file has failed.
var errEarly = errors.New("it accepted the file before the last byte")

// errClosed ends the judgement of a file whose upload has ended.
var errClosed = errors.New("the upload has ended")

// refuse refuses a file because of a signature or a threat of this name.
func refuse(name string) error { return &Refusal{Reason: map[string]string{"": name}} }

// An Inspector judges files. It is safe for concurrent use.
type Inspector struct {
	// judge reads a file to its end, or until the file is refused. Nil accepts it, a Refusal does not, and any other
	// error says why it could not be judged.
	judge func(ctx context.Context, name string, r io.Reader) error
}

// Probe has a harmless file judged, and returns an error if it could not be. A refusal is none.
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

// A File is one that an inspector is judging. It is for one goroutine.
type File struct {
	ctx     context.Context
	bytes   *io.PipeWriter
	cancel  context.CancelFunc
	ended   <-chan error
	verdict error
	judged  bool // verdict is there
}

// Begin has a file judged whose pathname is name. The end of ctx ends that. The caller closes the File.
func (i *Inspector) Begin(ctx context.Context, name string) *File {
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) })
	source := &source{r: r}
	return &File{ctx: ctx, bytes: w, cancel: cancel, ended: panics.Start(func() (err error) {
		defer func() {
			stop()
			_ = r.CloseWithError(errClosed) // a Write that waits, or comes later, fails
		}()
		err = panics.Catch(func() error { return i.judge(ctx, name, source) })
		if err == nil && !source.ended.Load() {
			err = errEarly
		}
		if _, refused := errors.AsType[*Refusal](err); err != nil && !refused {
			err = fmt.Errorf("%w: %v", ErrUnjudged, err) //nolint:errorlint // its kind is not that of an error of S3
		}
		return err
	})}
}

// Write passes bytes on, and waits until the inspector has taken them. Its error is that of Verdict, where an inspector
// refuses or fails before the last byte.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.bytes.Write(p)
	if err != nil {
		if verdict := f.wait(); verdict != nil {
			err = verdict
		}
	}
	return n, err
}

// Verdict says that the file is whole, and returns nil if it is accepted. Otherwise the error is a [Refusal], or says
// why the inspector could not judge the file.
func (f *File) Verdict() error {
	_ = f.bytes.CloseWithError(context.Cause(f.ctx)) // nil: the end of the file
	return f.wait()
}

// Close ends the judgement. Without a Verdict there is none. It waits until the connection is closed.
func (f *File) Close() {
	_ = f.bytes.CloseWithError(errClosed)
	f.cancel()
	_ = f.wait()
}

func (f *File) wait() error {
	if !f.judged {
		f.verdict, f.judged = <-f.ended, true
		f.cancel()
	}
	return f.verdict
}

// A source is the bytes of a file. It knows when the last of them has been read: before it can have been sent.
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

// A dialer connects to an inspector. What the inspector does not take within the timeout ends the connection.
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
		// The queue of a Unix socket is full. Another client has to be accepted first.
		select {
		case <-time.After(redialAfter):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// exchange sends a file and receives the answer at the same time, because some inspectors answer before the last byte.
// The answer has to begin within the timeout after that, and so has each of its packets. An answer counts also if the
// inspector has not taken the rest of the file.
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

// A timedConn lets each Write wait no longer than timeout.
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
