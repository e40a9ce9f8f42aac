package control

import (
	"context"
	"path"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
)

// runTransfer runs work, which transfers a file or a listing over the prepared data connection. The transfer
// releases its slots in the limits before the client reads the last reply.
func (s *session) runTransfer(t *dataTransfer, verb, name string, work func(op *operation) error) (wire.Reply, error) {
	source := s.data.prepared.Take()
	if source == nil {
		return s.reply(425, i18n.DataConnectionFirst)
	}
	defer func() { s.data.prepared.Return(source, t.Transfer) }()
	if s.mustEncrypt() && !s.data.private {
		return s.reply(521, i18n.ProtectionRequired)
	}
	leave, err := s.identity.scopes().AcquireTransfer()
	if err != nil {
		return wire.Reply{}, err
	}
	defer leave()
	t.Transfer, t.address = dataconn.NewTransfer(source, s.transferOptions(t)), s.data.address
	op := s.op
	op.data, op.Transfer = t, t.Transfer
	if op.Announced > 0 && op.Offset == 0 {
		t.SetSize(op.Announced)
	}
	op.started = make(chan struct{}, 1)
	op.Starting = func() { op.started <- struct{}{} }
	op.reported = s.describe(t, verb, name)
	s.observers.Transferring(op.reported)
	err = s.perform(func() error { return work(op) })
	if err == nil && !t.Result().Complete {
		err = engine.ErrUnexpected
	}
	if err != nil {
		return wire.Reply{}, s.about(err)
	}
	return s.reply(226, i18n.TransferComplete)
}

// transferOptions returns the options of the data connection of t.
func (s *session) transferOptions(t *dataTransfer) dataconn.Options {
	tenant := s.identity.login.Tenant
	options := dataconn.Options{
		Config: s.cfg.Data, Contended: s.identity.contended,
		Upload: t.upload, Listing: t.listing != nil,
		ControlTLS: s.dialogue.conn.Encrypted(), LenientEOF: tenant.LenientDataEOF(),
		Pace: s.identity.scopes().Pace(t.upload),
	}
	if s.data.private {
		options.TLS, options.Handshake, options.RequireReuse = s.cfg.TLS, s.dialogue.handshake(s.identity.hostname),
			tenant.TLS.RequireSessionReuse
	}
	return options
}

// describe returns a description of t for the observers.
func (s *session) describe(t *dataTransfer, verb, name string) *report.Transfer {
	described := &report.Transfer{
		Progress: t.Transfer, Tenant: s.identity.login.Tenant.Name, Verb: verb, Path: path.Clean(name),
		Offset: s.op.Offset, Announced: s.op.Announced, TLS: s.data.private,
		DataAddress: t.address, ReachedAddress: s.dialogue.conn.Local(),
	}
	if t.listing == nil {
		described.URI = s.identity.login.View.URI(name)
	}
	return described
}

// beforeCommit is called by the storage before an upload becomes visible. It returns an error if the upload must
// not be committed because the client has gone.
func (s *session) beforeCommit(ctx context.Context) error {
	op := s.op
	if op == nil || op.data == nil {
		return dataconn.ErrPeerClosed // the command has already ended with a reply
	}
	return op.data.AwaitCommit(ctx, s.dialogue.conn, s.cfg.CommitDelay)
}

// retr handles RETR.
func (s *session) retr(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	return s.runFileTransfer(&dataTransfer{}, "RETR", name)
}

// runFileTransfer lets ftpserverlib transfer a file with the parameters set by TYPE, REST, RANG, ALLO and SITE HASH.
func (s *session) runFileTransfer(t *dataTransfer, verb, name string) (wire.Reply, error) {
	op := s.op
	parameters := &op.parameters
	if parameters.RestartsInText() {
		return s.reply(554, i18n.RestartInASCII)
	}
	op.Verb, op.Name, op.ASCII, op.Offset = verb, name, parameters.ASCII, parameters.Offset
	if r := parameters.ByteRange; r != nil {
		switch {
		case t.upload: // S3 cannot replace a part of an object
			return s.reply(504, i18n.RangeForDownloads)
		case parameters.ASCII:
			return s.reply(551, i18n.RestartInASCII)
		}
		op.Offset, op.Count = r.From, r.To-r.From
	}
	if t.upload {
		op.Announced = parameters.Announced
		if !op.ASCII {
			op.Storage.Announced = op.Announced
		}
		if parameters.SHA256 != nil && (verb == "APPE" || !parameters.WholeFile()) {
			return s.reply(504, i18n.HashForWholeFiles)
		}
		op.Storage.SHA256 = parameters.SHA256
	}
	return s.runTransfer(t, verb, name, func(op *operation) error { return s.engine.Run(&op.Operation) })
}

// stor handles STOR and APPE. After REST they are the same (RFC 3659, 5.3).
func (s *session) stor(arg string) (wire.Reply, error) {
	name, err := s.absoluteFile(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	verb := s.op.command.Name
	if s.op.parameters.Offset > 0 {
		verb = "STOR"
	}
	return s.runFileTransfer(&dataTransfer{upload: true}, verb, name)
}

// stou handles STOU, which is STOR with an unused name (RFC 1123, 4.1.2.9).
func (s *session) stou(arg string) (wire.Reply, error) {
	s.op.fileName = s.identity.nameCodec().Echo(s.state.directory, arg)
	request := s.request()
	var name string
	err := s.perform(func() (err error) {
		name, err = request.newName(arg)
		return err
	})
	if err != nil {
		return wire.Reply{}, s.about(err)
	}
	return s.runFileTransfer(&dataTransfer{upload: true, fileName: name}, "STOR", name)
}

// abor handles ABOR after the command that it stopped, if any, got its reply 426. Otherwise it closes a prepared
// data connection. The reply is 226 in both cases (RFC 959, 4.1.3).
func (s *session) abor(string) (wire.Reply, error) {
	id := i18n.AbortNothing
	if s.aborted {
		id = i18n.AbortDone
	}
	s.aborted = false
	s.closeDataPort()
	return s.reply(226, id)
}
