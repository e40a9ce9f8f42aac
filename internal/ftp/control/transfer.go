package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
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
	begun    bool          // The engine has said that the data connection is open.
	started  bool          // The client has its 150.
}

// runTransfer lets the engine do a transfer on the data connection that the client has prepared. The engine learns of
// the data connection by an EPSV that no client sees. When the client reads the last reply, the transfer counts for no
// limit any more.
func (s *session) runTransfer(t *transfer, verb, name string) (wire.Reply, error) {
	source := s.op.prepared.data.Take()
	if source == nil {
		return s.reply(425, i18n.DataConnectionFirst)
	}
	defer func() { s.op.prepared.data.Return(source, t.Transfer) }()
	if s.mustEncrypt() && !s.settings.private {
		return s.reply(521, i18n.ProtectionRequired)
	}
	leave, err := s.identity.scopes().EnterTransfer()
	if err != nil {
		return wire.Reply{}, err
	}
	defer leave()
	t.Transfer = dataconn.NewTransfer(source, s.transferOptions(t))
	op := s.op
	op.transfer, op.Transfer, op.Count = t, t.Transfer, t.count
	if t.upload {
		if op.Announced = s.op.prepared.parameters.Announced; op.Announced > 0 && t.offset == 0 {
			t.SetSize(op.Announced)
		}
		if !t.ascii {
			op.Storage.Announced = op.Announced
		}
	}
	if err = s.startEngine(); err == nil {
		err = s.engine.PrepareTransfer(&op.Operation, t.offset, t.ascii)
	}
	switch {
	case errors.Is(err, engine.ErrCannotListen):
		s.log.Error("no data connection, because the FTP engine cannot open a socket; check the limit of descriptors",
			"err", err)
		return s.reply(425, i18n.CommandFailed)
	case err != nil:
		return s.engineFailed(err)
	}
	op.told = s.describe(t, verb, name)
	s.observers.Transferring(op.told)
	r, err := s.forward(verb, name)
	if t.ascii && !s.dialogue.closing {
		s.engine.EndASCII()
	}
	return r, err
}

// transferOptions are what the data connection of a transfer needs to know.
func (s *session) transferOptions(t *transfer) dataconn.Options {
	tenant := s.identity.login.Tenant
	options := dataconn.Options{
		Settings: s.cfg.Data, Scarce: s.identity.scarce,
		Upload: t.upload, ControlTLS: s.dialogue.conn.Encrypted(), LenientEOF: tenant.LenientDataEOF(),
		Pace: s.identity.scopes().Pace(t.upload),
	}
	if t.listing != nil {
		options.Listing = func(w io.Writer) error { return s.op.Do(func() error { return t.listing.WriteLines(w) }) }
	}
	if s.settings.private {
		options.TLS, options.Handshake, options.RequireReuse = s.cfg.TLS, s.dialogue.handshake(s.identity.hostname),
			tenant.TLS.RequireSessionReuse
	}
	return options
}

// describe is what the observers get of a transfer that begins.
func (s *session) describe(t *transfer, verb, name string) *report.Transfer {
	told := &report.Transfer{
		Progress: t.Transfer, Tenant: s.identity.login.Tenant.Name, Verb: verb, Path: path.Clean(name),
		Offset: t.offset, TLS: s.settings.private, DataAddress: s.op.prepared.address,
		ReachedAddress: s.dialogue.conn.Local(),
	}
	if t.listing == nil {
		told.URI = s.identity.login.View.URI(name)
	}
	if t.upload {
		told.Announced = s.op.prepared.parameters.Announced
	}
	return told
}

// transferBegins takes a preliminary reply of the engine, and returns false for another. The client gets 150 once. It
// comes before the data connection is open where the client has not connected to the passive port. The client may wait
// for it (RFC 959 5.4).
func (s *session) transferBegins(r wire.Reply) bool {
	t := s.op.transfer
	if t == nil || !r.Preliminary() {
		return false
	}
	t.begun = t.Connected()
	if !t.started {
		t.started = true
		s.goOn(s.transferStarting())
	}
	return true
}

// transferStarting names the file, as STOU has chosen it too (RFC 1123 4.1.2.9), and the size of a download. Clients
// look for "(4071 bytes)" behind the name, in every language.
func (s *session) transferStarting() wire.Reply {
	t := s.op.transfer
	if t.fileName != "" {
		shown := s.identity.nameCodec().EncodePath(t.fileName)
		if dir := s.workingDirectory(); path.Dir(t.fileName) == dir {
			shown = s.identity.nameCodec().EncodeName(dir, path.Base(t.fileName))
		}
		return wire.NewReply(150, "FILE: "+shown)
	}
	if t.listing != nil || s.op.fileName == "" {
		return wire.NewReply(150, s.identity.text(i18n.TransferStarting))
	}
	text := s.identity.locale.TextFor(i18n.TransferFileStarting, s.op.fileName)
	if whole := !t.upload && !t.ascii && t.offset == 0 && t.count == 0; whole && s.op.File != nil {
		if info, err := s.op.File.Stat(); err == nil {
			text += s.identity.locale.Field(fmt.Sprintf("(%d bytes)", info.Size()))
		}
	}
	return wire.NewReply(150, text)
}

// beforeCommit is asked before an upload becomes visible.
func (s *session) beforeCommit(ctx context.Context) error {
	op := s.op
	if op == nil || op.transfer == nil {
		return dataconn.ErrPeerClosed // its client has got a reply already
	}
	return op.transfer.AwaitCommit(ctx, s.dialogue.conn, s.cfg.CommitDelay)
}

// retr is RETR.
func (s *session) retr(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	return s.runFileTransfer(&transfer{}, "RETR", name)
}

// runFileTransfer is runTransfer for a file, which TYPE, REST and RANG are about.
func (s *session) runFileTransfer(t *transfer, verb, name string) (wire.Reply, error) {
	parameters := &s.op.prepared.parameters
	if parameters.RestartsInText() {
		return s.reply(554, i18n.RestartInASCII)
	}
	t.ascii, t.offset = parameters.ASCII, parameters.Offset
	if r := parameters.ByteRange; r != nil {
		switch {
		case t.upload: // nothing can replace a part of an object
			return s.reply(504, i18n.RangeForDownloads)
		case parameters.ASCII:
			return s.reply(551, i18n.RestartInASCII)
		}
		t.offset, t.count = r.From, r.To-r.From // for the engine an offset of REST
	}
	return s.runTransfer(t, verb, name)
}

// stor is STOR and APPE. After REST they are the same (RFC 3659 5.3).
func (s *session) stor(arg string) (wire.Reply, error) {
	name, err := s.absoluteFile(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	verb := s.op.command.Name
	if s.op.prepared.parameters.Offset > 0 {
		verb = "STOR"
	}
	return s.runFileTransfer(&transfer{upload: true}, verb, name)
}

// stou is STOU: STOR under a name that is not taken (RFC 1123 4.1.2.9).
func (s *session) stou(arg string) (wire.Reply, error) {
	s.op.fileName = s.identity.nameCodec().Echo(s.workingDirectory(), arg)
	request := s.request()
	var name string
	err := s.perform(func() (err error) {
		name, err = request.newName(arg)
		return err
	})
	if err != nil {
		return wire.Reply{}, err
	}
	return s.runFileTransfer(&transfer{upload: true, fileName: name}, "STOR", name)
}

// abor is ABOR when its turn has come: a transfer that was running has been stopped and answered with 426 before.
// Without one a data connection that waits for a transfer is closed. Both are 226 (RFC 959 4.1.3).
func (s *session) abor(string) (wire.Reply, error) {
	id := i18n.AbortNothing
	if s.aborted {
		id = i18n.AbortDone
	}
	s.aborted = false
	s.closeDataPort()
	return s.reply(226, id)
}
