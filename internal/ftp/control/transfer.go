package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// A transfer is a transfer command: what the engine needs to know, and its data connection.
type transfer struct {
	*dataconn.Transfer
	upload   bool
	listing  *list.Listing // nil for a file
	fileName string        // of STOU, absolute
	ascii    bool          // converts lines
	offset   int64         // where it begins
	count    int64         // bytes of RANG, 0 for all
	begun    bool          // whether the engine has said that the data connection is open
}

// runTransfer does a transfer on the data connection that the client has prepared. When the client reads the last
// reply, the transfer counts for no limit any more.
func (s *session) runTransfer(t *transfer, verb, name string) { s.send(s.doTransfer(t, verb, name)) }

// doTransfer lets the engine do a transfer, and returns its last reply. The engine learns of the data connection by
// an EPSV that no client sees.
func (s *session) doTransfer(t *transfer, verb, name string) wire.Reply {
	cfg := s.cfg
	source := s.data.Take()
	if source == nil {
		return wire.NewReply(425, s.text(i18n.DataConnectionFirst))
	}
	defer func() { s.data.Return(source, t.Transfer) }()
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
		Upload: t.upload, ControlTLS: s.conn.Encrypted(), LenientEOF: s.login.Tenant.LenientDataEOF(),
		Pace: s.scopes().Pace(t.upload),
	}
	if t.listing != nil {
		options.Listing = func(w io.Writer) error { return s.op.Do(func() error { return t.listing.WriteLines(w) }) }
	}
	if s.data.private {
		options.TLS, options.Handshake, options.RequireReuse = cfg.TLS, s.handshake(),
			s.login.Tenant.RequireSessionReuse
	}
	t.Transfer = dataconn.NewTransfer(source, options)
	s.transfer = t
	defer func() { s.transfer = nil }()
	op := &s.op.Operation
	op.Transfer, op.Count = t.Transfer, t.count
	if t.upload {
		if op.AllocSize = s.parameters.AllocSize; op.AllocSize > 0 && t.offset == 0 {
			t.SetSize(op.AllocSize)
		}
	}
	switch err := s.engine.PrepareTransfer(op, t.offset, t.ascii); {
	case errors.Is(err, engine.ErrCannotListen):
		s.log.Error("no data connection, because the FTP engine cannot open a socket; check the limit of descriptors",
			"err", err)
		return wire.NewReply(425, s.text(i18n.DataConnectionFailed))
	case err != nil:
		return s.engineFailed(err)
	}
	s.observer.Transferring(s.login.Tenant.Name, name, t.Transfer)
	defer s.observer.Transferred(t.Transfer) // after a panic too
	r := s.forward(verb, name)
	s.logTransfer(t, verb, name, r)
	if t.ascii && !s.closing {
		s.engine.EndASCII()
	}
	return r
}

// logTransfer tells the log how a transfer ended.
func (s *session) logTransfer(t *transfer, verb, name string, r wire.Reply) {
	outcome := t.Outcome()
	line := &sessionlog.Transfer{
		Command: verb, Direction: t.Direction(), Path: name, Bytes: t.Bytes(), Offset: t.offset, Code: r.Code,
		TLS:      s.data.private,
		Duration: t.Elapsed(), FirstByte: t.FirstByte(), Connection: outcome.Connection, Storage: outcome.Storage,
		DataAddress: s.data.address,
	}
	if t.listing == nil {
		line.Path = cmp.Or(s.op.Path, name)
		line.URI = s.login.View.URI(line.Path)
	}
	if t.upload {
		line.Announced = s.parameters.AllocSize
	}
	if s.op.File != nil {
		line.Stat = s.op.File.Stat
	}
	line.Log(s.op.Context, s.log)
}

// transferStarting names the file, as STOU has chosen it too (RFC 1123 4.1.2.9), and the size of a download. Clients
// look for "(4071 bytes)" behind the name, in every language.
func (s *session) transferStarting() wire.Reply {
	t := s.transfer
	if t.fileName != "" {
		shown := s.nameCodec().EncodePath(t.fileName)
		if dir := s.workingDirectory(); path.Dir(t.fileName) == dir {
			shown = s.nameCodec().EncodeName(dir, path.Base(t.fileName))
		}
		return wire.NewReply(150, "FILE: "+shown)
	}
	if t.listing != nil || s.op.fileName == "" {
		return wire.NewReply(150, s.text(i18n.TransferStarting))
	}
	text := s.locale.TextFor(i18n.TransferFileStarting, s.op.fileName)
	if whole := !t.upload && !t.ascii && t.offset == 0 && t.count == 0; whole && s.op.File != nil {
		if info, err := s.op.File.Stat(); err == nil {
			text += fmt.Sprintf(" (%d bytes)", info.Size())
		}
	}
	return wire.NewReply(150, text)
}

// transferEnded is the reply to a transfer that the engine has ended, and nothing that the engine says decides it. An
// error of the data connection goes before one of the storage.
func (s *session) transferEnded(r wire.Reply) wire.Reply {
	if s.transfer.Outcome().Complete {
		return wire.NewReply(226, s.text(i18n.TransferComplete))
	}
	panics.Raise(s.op.Err)
	cause := s.transfer.Err()
	if cause == nil && s.op.Err != nil {
		if cause = context.Cause(s.op.Context); cause == nil {
			return s.errorReply(s.op.Err)
		}
	}
	if cause == nil {
		return s.unexpected(r)
	}
	if errors.Is(cause, dataconn.ErrAborted) {
		s.aborted = true
	}
	lost := i18n.TransferInterrupted
	switch {
	case s.op.Kept.Load():
		lost = i18n.TransferResumable
	case s.transfer.upload:
		lost = i18n.TransferBroken
	}
	code, id := reply.ForTransfer(cause, lost)
	return wire.NewReply(code, s.text(id))
}

// dataConnectionFailed is the reply when no data connection came about.
func (s *session) dataConnectionFailed(r wire.Reply) wire.Reply {
	if errors.Is(s.transfer.Err(), dataconn.ErrAborted) {
		return s.transferEnded(r)
	}
	return wire.NewReply(425, s.text(i18n.DataConnectionFailed))
}

// beforeCommit is asked before an upload becomes visible.
func (s *session) beforeCommit(ctx context.Context) error {
	t := s.transfer
	if t == nil {
		return dataconn.ErrPeerClosed // the session was cut and has not waited
	}
	return t.AwaitCommit(ctx, s.conn, s.cfg.CommitDelay)
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
	s.op.fileName = s.nameCodec().Echo(s.workingDirectory(), arg)
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

// stou is STOU: STOR under a name that is not taken (RFC 1123 4.1.2.9).
func (s *session) stou(arg string) {
	s.op.fileName = s.nameCodec().Echo(s.workingDirectory(), arg)
	request := s.request()
	var name string
	err := s.perform(func() (err error) {
		name, err = request.NewName(arg)
		return err
	})
	if err != nil {
		s.replyError(err)
		return
	}
	s.runFileTransfer(&transfer{upload: true, fileName: name}, "STOR", name)
}

// abor is ABOR when its turn has come: a transfer that was running has been stopped and answered with 426 before.
// Without one a data connection that waits for a transfer is closed. Both are 226 (RFC 959 4.1.3).
func (s *session) abor(string) {
	id := i18n.AbortNothing
	if s.aborted {
		id = i18n.AbortDone
	}
	s.aborted = false
	s.closeDataPort()
	s.reply(226, id)
}
