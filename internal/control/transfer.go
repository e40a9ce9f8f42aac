package control

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/dataconn"
	"github.com/babelftp/babelftp/internal/engine"
	"github.com/babelftp/babelftp/internal/ftplist"
	"github.com/babelftp/babelftp/internal/panics"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/reply"
	"github.com/babelftp/babelftp/internal/wire"
)

// A transfer is a transfer command: what the engine needs to know, and its data connection.
type transfer struct {
	*dataconn.Transfer
	upload   bool
	listing  *ftplist.Listing // nil for a file
	fileName string           // of STOU
	ascii    bool             // converts lines
	offset   int64            // where it begins
	count    int64            // bytes of RANG, 0 for all
}

// runTransfer does a transfer on the data connection that the client has prepared. When the client reads the last reply, the transfer counts
// for no limit any more.
func (s *session) runTransfer(t *transfer, verb, name string) { s.send(s.doTransfer(t, verb, name)) }

// doTransfer lets the engine do a transfer, and returns its last reply. The engine learns of the data connection by an EPSV that no client sees.
func (s *session) doTransfer(t *transfer, verb, name string) wire.Reply {
	cfg := &s.server.cfg
	source := s.data.Take()
	if source == nil {
		return wire.NewReply(425, s.text(i18n.DataConnectionFirst))
	}
	defer source.Close()
	if cfg.TLSRequired && !s.data.private {
		return wire.NewReply(521, s.text(i18n.ProtectionRequired))
	}
	leave, err := s.scopes().EnterTransfer()
	if err != nil {
		return s.errorReply(err)
	}
	defer leave()
	options := dataconn.Options{
		Settings: cfg.Data, Scarce: s.login.Scarce,
		Upload: t.upload, ControlTLS: s.conn.Encrypted(), LenientEOF: s.login.Tenant.LenientDataEOF,
		Pace: s.scopes().Pace(t.upload),
	}
	if t.listing != nil {
		options.Listing = func(w io.Writer) error { return s.op.Do(func() error { return t.listing.WriteLines(w) }) }
	}
	if s.data.private {
		options.TLS, options.Handshake, options.RequireReuse = cfg.TLS, s.handshake(), s.login.Tenant.RequireSessionReuse
	}
	t.Transfer = dataconn.NewTransfer(source, options)
	s.transfer = t
	defer func() { s.transfer = nil }()
	op := &s.op.Operation
	op.Transfer, op.Count = t.Transfer, t.count
	if t.upload {
		op.AllocSize = s.parameters.AllocSize
	}
	switch err := s.engine.PrepareTransfer(op, t.offset, t.ascii); {
	case errors.Is(err, engine.ErrCannotListen):
		s.log.Error("no data connection, because the FTP engine cannot open a socket; check the limit of descriptors", "err", err)
		return wire.NewReply(425, s.text(i18n.DataConnectionFailed))
	case err != nil:
		return s.engineFailed(err)
	}
	r := s.forward(verb, name)
	s.observeTransfer(t, verb+" "+name, r)
	if t.ascii && !s.closing {
		if err := s.engine.EndASCII(); err != nil {
			r = s.engineFailed(err)
		}
	}
	return r
}

// observeTransfer tells the observer and the log how a transfer ended. The log shows the errors of the data connection and of the storage,
// because the one often follows from the other.
func (s *session) observeTransfer(t *transfer, commandLine string, r wire.Reply) {
	about := []any{"command", commandLine, "bytes", t.Bytes(), "code", r.Code}
	if size := s.parameters.AllocSize; t.upload && size > 0 {
		about = append(about, "announced", size)
	}
	if r.Code >= 400 {
		about = append(about, "connection", t.Err(), "storage", s.op.Err)
	}
	s.observer.Transferred(s.login.Tenant.Name, t.upload, t.Bytes(), r.Code < 400)
	s.log.Info("transfer", about...)
}

// transferStarting names the file that STOU chose (RFC 1123 4.1.2.9).
func (s *session) transferStarting() wire.Reply {
	if name := s.transfer.fileName; name != "" {
		return wire.NewReply(150, "FILE: "+s.nameCodec().EncodeName(s.workingDirectory(), name))
	}
	return wire.NewReply(150, s.text(i18n.TransferStarting))
}

// transferFailed is the reply to a transfer that did not complete. An error of the data connection goes before one of the storage.
func (s *session) transferFailed() wire.Reply {
	panics.Raise(s.op.Err)
	cause := s.transfer.Err()
	if cause == nil && s.op.Err != nil {
		return s.errorReply(s.op.Err)
	}
	if errors.Is(cause, dataconn.ErrAborted) {
		s.aborted = true
	}
	code, id := reply.ForTransfer(cause, s.transfer.upload)
	return wire.NewReply(code, s.text(id))
}

// dataConnectionFailed is the reply when no data connection came about.
func (s *session) dataConnectionFailed() wire.Reply {
	if errors.Is(s.transfer.Err(), dataconn.ErrAborted) {
		return s.transferFailed()
	}
	return wire.NewReply(425, s.text(i18n.DataConnectionFailed))
}

// beforeCommit is asked before an upload becomes visible.
func (s *session) beforeCommit(ctx context.Context) error {
	t := s.transfer
	if t == nil {
		return dataconn.ErrPeerClosed // the session was cut and has not waited
	}
	return t.AwaitCommit(ctx, s.conn, s.server.cfg.CommitDelay)
}

// retr is RETR.
func (s *session) retr(arg string) {
	name, err := s.resolve(arg)
	if err != nil {
		s.replyError(err)
		return
	}
	s.runFileTransfer(&transfer{}, "RETR", name)
}

// runFileTransfer is runTransfer for a file, which TYPE, REST and RANG are about.
func (s *session) runFileTransfer(t *transfer, verb, name string) {
	if s.parameters.RestartsInText() {
		s.reply(554, i18n.RestartInASCII)
		return
	}
	t.ascii, t.offset = s.parameters.ASCII, s.parameters.Offset
	if s.beginRange(t) {
		s.runTransfer(t, verb, name)
	}
}

// stor is STOR and APPE. After REST they are the same (RFC 3659 5.3).
func (s *session) stor(arg string) {
	name, err := s.nameCodec().ResolveFile(s.workingDirectory(), arg)
	if err != nil {
		s.replyError(err)
		return
	}
	verb := s.verb
	if s.parameters.Offset > 0 {
		verb = "STOR"
	}
	s.runFileTransfer(&transfer{upload: true}, verb, name)
}

// orPendingUpload describes what stat finds, or where there is nothing the upload of a file that the user can resume: SIZE and MLST are how
// clients learn where.
func (s *session) orPendingUpload(name string, stat func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := stat(name)
	if !s.login.Resumable || !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	return s.op.Storage.PendingUpload(name)
}

// stou is STOU: STOR under a name that is not taken (RFC 1123 4.1.2.9). The name is new because it holds the time in nanoseconds and the
// session looks.
func (s *session) stou(string) {
	name := path.Join(s.workingDirectory(), "ftp-"+time.Now().UTC().Format("20060102T150405.000000000"))
	err := s.perform(func() error {
		taken, err := pathname.Exists(func(name string) error { _, err := s.op.Storage.StatFile(name); return err }, name)
		if taken {
			return fs.ErrExist
		}
		return err
	})
	if err != nil {
		s.replyError(err)
		return
	}
	s.runFileTransfer(&transfer{upload: true, fileName: path.Base(name)}, "STOR", name)
}

// abor is ABOR when its turn has come: a transfer that was running has been stopped and answered with 426 before. Without one a data
// connection that waits for a transfer is closed. Both are 226 (RFC 959 4.1.3).
func (s *session) abor(string) {
	id := i18n.AbortNothing
	if s.aborted {
		id = i18n.AbortDone
	}
	s.aborted = false
	s.data.Close()
	s.reply(226, id)
}
