package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/wire"
)

// Why a transfer was stopped.
var (
	errAborted    = errors.New("aborted by the client")
	errStalled    = errors.New("the data connection stalled")
	errClientGone = errors.New("the control connection has ended")
	errDataLost   = errors.New("the data connection was lost")
	errTLSFailed  = errors.New("no TLS on the data connection")
)

// A transfer is one use of a data connection, for a file or a listing.
type transfer struct {
	upload   bool
	listing  *listing // nil for a file
	fileName string   // what STOU chose
	ascii    bool     // whether the lines of a file are converted
	offset   int64    // where in a file it begins
	count    int64    // how many bytes of a file RANG has chosen, 0 for all
	source   dataSource
	tls      *tls.Config // nil for a data connection in the clear
	host     string      // from HOST, for the certificate
	underTLS bool        // whether the control connection is
	// lenientEOF accepts an upload under TLS that ends without close_notify.
	lenientEOF bool
	timeout    time.Duration
	stall      time.Duration
	bytes      atomic.Int64

	mu    sync.Mutex
	cause error       // the first reason to fail that is not the storage's
	abort func(error) // of the file, nil until it is open
	conn  *dataConn   // nil until open
}

// opened remembers how to abort the file, so that a stop need not wait for S3.
func (t *transfer) opened(abort func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.abort = abort
	if t.cause != nil {
		abort(t.cause)
	}
}

// open waits for the data connection. The engine calls it through its listener
// when the file has been opened.
func (t *transfer) open(ctx context.Context) (net.Conn, error) {
	if err := t.failed(); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	conn, err := t.source.open(waiting)
	if err != nil {
		return nil, fmt.Errorf("open the data connection: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		_ = conn.Close()
		return nil, t.cause
	}
	t.conn = newDataConn(ctx, t, conn)
	return t.conn, nil
}

// stop ends a transfer for a reason. It may be called at any time, by any
// goroutine, and for no transfer at all.
func (t *transfer) stop(cause error) {
	if t == nil {
		return
	}
	t.fail(cause)
	t.source.close()
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
func (t *transfer) fail(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		t.cause = cause
	}
}

func (t *transfer) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// transferListener is the listener from which the engine takes a transfer's
// data connection.
type transferListener struct {
	engine   *engine
	transfer *transfer
}

var _ net.Listener = (*transferListener)(nil)

func (l *transferListener) Accept() (net.Conn, error) { return l.transfer.open(l.engine.session.ctx) }

// Close does nothing: the session closes what the transfer uses.
func (l *transferListener) Close() error { return nil }

// Addr is the address that the client reached.
func (l *transferListener) Addr() net.Addr { return l.engine.Addr() }

// runTransfer lets the engine do a transfer on the data connection that the
// client has prepared. The engine learns of that connection by an EPSV that no
// client sees.
func (s *session) runTransfer(t *transfer, commandLine string) {
	cfg := &s.server.cfg
	t.source, s.data.source = s.data.source, nil
	switch {
	case t.source == nil:
		s.say(425, i18n.DataConnectionFirst)
		return
	case cfg.TLSRequired && !s.data.private:
		t.source.close()
		s.say(521, i18n.ProtectionRequired)
		return
	}
	defer t.source.close()
	t.timeout, t.stall = cfg.DataTimeout, cfg.StallTimeout
	t.underTLS, t.lenientEOF = s.conn.Encrypted(), s.login.Tenant.LenientDataEOF
	if s.data.private {
		t.tls, t.host = cfg.TLS, s.hostname
	}
	s.transfer = t
	defer func() { s.transfer = nil }()
	switch err := s.prepareEngine(t); {
	case errors.Is(err, errCannotListen):
		s.log.Error("no data connection", "err", err)
		s.say(425, i18n.DataConnectionFailed)
		return
	case err != nil:
		s.send(s.engineFailed(err))
		return
	}
	r := s.forward(commandLine)
	s.observeTransfer(t, commandLine, r)
	if t.ascii && !s.closing {
		if err := s.silently("TYPE I", 200); err != nil {
			r = s.engineFailed(err)
		}
	}
	s.send(r)
}

// prepareEngine tells the engine what the next command transfers, and nothing else
// ever does. So whatever a transfer before has left in the engine is replaced: it
// keeps an offset when a transfer does not begin, and has none under TYPE A.
func (s *session) prepareEngine(t *transfer) error {
	err := s.silently("REST "+strconv.FormatInt(t.offset, 10), 350)
	if err == nil {
		err = s.listen()
	}
	if err == nil && t.ascii {
		err = s.silently("TYPE A", 200) // TYPE I again when the transfer has ended
	}
	return err
}

// silently gives the engine a command whose reply is for nobody.
func (s *session) silently(commandLine string, code int) error {
	if err := s.engine.command(commandLine); err != nil {
		return err
	}
	r, err := s.engine.next()
	if err != nil {
		return err
	}
	if r.Code != code {
		return fmt.Errorf("engine's reply to %s: %d %q", commandLine, r.Code, r.Lines)
	}
	return nil
}

// observeTransfer tells the observer and the log how a transfer ended. Both
// what was noted of its data connection and what the storage said are shown,
// because the one often follows from the other.
func (s *session) observeTransfer(t *transfer, commandLine string, r wire.Reply) {
	about := []any{"command", commandLine, "bytes", t.bytes.Load(), "code", r.Code}
	if announced := s.parameters.announced; t.upload && announced > 0 {
		about = append(about, "announced", announced)
	}
	var err error
	if r.Code >= 400 {
		err = fmt.Errorf("reply %d", r.Code)
		about = append(about, "connection", t.failed(), "storage", s.noted)
	}
	s.observer.Transferred(s.login.Tenant.Name, t.upload, t.bytes.Load(), err)
	s.log.Info("transfer", about...)
}

// transferFailed is the reply to a transfer that did not complete: what was
// noted about its data connection first, then the storage's error.
func (s *session) transferFailed() wire.Reply {
	cause := s.transfer.failed()
	id := i18n.TransferInterrupted
	switch {
	case errors.Is(cause, errTLSFailed): // RFC 4217 10.2
		return wire.NewReply(522, s.text(i18n.TLSFailed))
	case errors.Is(cause, errAborted):
		s.aborted = true
		id = i18n.TransferAborted
	case errors.Is(cause, errStalled):
		id = i18n.TransferStalled
	case cause != nil && s.transfer.upload:
		id = i18n.TransferBroken
	case cause == nil && s.noted != nil:
		return s.failure(s.noted)
	}
	return wire.NewReply(426, s.text(id))
}

// dataConnectionFailed is the reply when no data connection came about.
func (s *session) dataConnectionFailed() wire.Reply {
	if errors.Is(s.transfer.failed(), errAborted) {
		return s.transferFailed()
	}
	return wire.NewReply(425, s.text(i18n.DataConnectionFailed))
}

// retr is RETR.
func (s *session) retr(arg string) {
	name, err := s.resolve(arg)
	if err != nil {
		s.fail(err)
		return
	}
	s.runFileTransfer(&transfer{}, "RETR "+escapePathname(name))
}

// runFileTransfer is runTransfer for a file, which TYPE, REST and RANG are about.
func (s *session) runFileTransfer(t *transfer, commandLine string) {
	if s.parameters.restartsInText() {
		s.say(554, i18n.RestartInASCII)
		return
	}
	t.ascii, t.offset = s.parameters.ascii, s.parameters.offset
	if s.beginRange(t) {
		s.runTransfer(t, commandLine)
	}
}

// stor is STOR and APPE. After REST they are the same (RFC 3659 5.3).
func (s *session) stor(arg string) {
	name, err := s.resolveFile(arg)
	if err != nil {
		s.fail(err)
		return
	}
	verb := s.verb
	if s.parameters.offset > 0 {
		verb = "STOR"
	}
	s.runFileTransfer(&transfer{upload: true}, verb+" "+escapePathname(name))
}

// orPendingUpload describes what stat finds, or where there is nothing the
// upload of a file that the user can resume: SIZE and MLST are how clients learn
// where.
func (s *session) orPendingUpload(name string, stat func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := stat(name)
	if s.login.PendingUpload == nil || !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	return s.login.PendingUpload(name)
}

// resolveFile resolves the pathname of a file to be made: "name/", "." and ".."
// name directories.
func (s *session) resolveFile(arg string) (string, error) {
	name, err := s.resolve(arg)
	if err != nil {
		return name, err
	}
	switch arg[strings.LastIndexByte(arg, '/')+1:] {
	case "", ".", "..":
		err = &fs.PathError{Op: "create", Path: name, Err: syscall.EISDIR}
	}
	return name, err
}

// stou is STOU: STOR under a name that is not taken (RFC 1123 4.1.2.9). The
// name is new because it holds the time in nanoseconds and the session looks.
func (s *session) stou(string) {
	name := path.Join(s.workingDirectory(), "ftp-"+time.Now().UTC().Format("20060102T150405.000000000"))
	taken, err := exists(func(name string) error { _, err := s.login.Storage.StatFile(name); return err }, name)
	if err == nil && taken {
		err = fs.ErrExist
	}
	if err != nil {
		s.fail(err)
		return
	}
	s.runFileTransfer(&transfer{upload: true, fileName: path.Base(name)}, "STOR "+escapePathname(name))
}

// abor is ABOR when its turn has come: a transfer that was running has been
// stopped and answered with 426 before. Without one a data connection that waits
// for a transfer is closed. Both are 226 (RFC 959 4.1.3).
func (s *session) abor(string) {
	id := i18n.AbortNothing
	if s.aborted {
		id = i18n.AbortDone
	}
	s.aborted = false
	s.data.close()
	s.say(226, id)
}
