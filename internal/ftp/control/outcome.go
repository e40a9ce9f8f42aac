package control

import (
	"cmp"
	"context"
	"errors"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
)

// Classes of codes (RFC 959 4.2.1).
const (
	firstIntermediate = 300
	firstFailure      = 400
)

// finish ends the command that is handled, if there is one, by its reply, or by an error that has none yet. The
// observers learn of it before the client does.
func (s *session) finish(r wire.Reply, err error) {
	if errors.Is(err, dataconn.ErrAborted) {
		s.aborted = true
	}
	s.logEngineError(err)
	if r.Code == 0 {
		r = s.errorReply(err)
	}
	// The last reply says what has cut the session: this one, or that of sayWhyItEnds.
	if last := s.dialogue.closing || r.Code == 421; last || s.ctx.Err() == nil {
		s.refused(err)
	}
	o, ctx := s.outcome(r, err), s.ctx
	if s.op != nil {
		ctx, s.op.ended = s.op.Context, true
		if s.op.Names != nil && !s.dialogue.closing { // else the command may be running
			s.identity.decide(s.op.Names.Choice)
		}
	}
	s.tell(ctx, o)
	s.flush()
	s.endOperation()
}

// logEngineError logs what only the operator can correct, or a bug.
func (s *session) logEngineError(err error) {
	switch {
	case errors.Is(err, engine.ErrCannotListen):
		s.log.Error("no data connection, because the FTP engine cannot open a socket; check the limit of descriptors",
			"err", err)
	case errors.Is(err, engine.ErrFailed):
		s.log.Error("FTP engine failed; the session ends", "command", s.op.command.Name, "err", err)
	case errors.Is(err, engine.ErrUnexpected):
		s.log.Error("unexpected reply of the FTP engine; report it as a bug", "command", s.op.command.Name, "err", err)
	}
}

// outcome is how the command that is handled has ended. Nothing else decides what observers get.
func (s *session) outcome(r wire.Reply, err error) *report.Outcome {
	o := &report.Outcome{Code: r.Code, Lines: r.Lines, Language: s.identity.locale.Tag(), Err: err,
		Pending: r.Code >= firstIntermediate && r.Code < firstFailure}
	op := s.op
	if op == nil || op.ended { // an observer has panicked, and those before it know how the command has ended
		return o
	}
	n := op.noted()
	o.Command, o.Path, o.To, o.URI, o.ToURI = op.command, n.Path, n.To, n.URI, n.ToURI
	if op.Names != nil && !s.dialogue.closing {
		o.Charset = string(op.Names.Read)
	}
	switch {
	case op.reads && n.Path == "":
		o.Kind = ""
	case n.Restore:
		o.Kind = report.Restore
	}
	if !o.Failed() && op.File != nil {
		o.Stored = storedFile(op.File)
	}
	if o.Transfer = op.told; o.Transfer != nil {
		if n.Path != "" {
			o.Transfer.Path, o.Transfer.URI = n.Path, n.URI
		}
		ended := op.transfer.Result()
		o.Transfer.Complete, o.Transfer.Connection, o.Transfer.Storage =
			ended.Complete, ended.Connection, ended.Storage
	}
	return o
}

// storedFile is what S3 has told of a file, nil where that is not known.
func storedFile(file engine.File) *report.Stored {
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	stored := &report.Stored{Size: info.Size()}
	if of, ok := info.(contract.Tagged); ok {
		stored.ETag = of.ETag()
	}
	if of, ok := info.(contract.Receipt); ok {
		stored.Checksum, stored.RequestID = of.Checksum(), of.RequestID()
	}
	return stored
}

// say sends a reply that no command has asked for.
func (s *session) say(code int, id i18n.ID, args ...string) { s.finish(s.reply(code, id, args...)) }

// endOperation ends the context of the command that has been answered, and lets go of its storage and its data
// connection: most sessions are idle. A session that was cut may have left the command running.
func (s *session) endOperation() {
	if s.op == nil {
		return
	}
	s.op.cancel(nil)
	if s.dialogue.closing {
		return
	}
	s.op = nil
}

// tell lets the observers know of an outcome, and keeps its reply to be written.
func (s *session) tell(ctx context.Context, o *report.Outcome) {
	s.identify()
	s.observers.CommandEnded(ctx, o)
	s.dialogue.buffer(wire.NewReply(o.Code, o.Lines...))
}

// failure is why the command has failed, and storage is the error of the storage, or of the login. The rule is the same
// for all commands: what stopped the command, else what its data connection has met, else the storage.
func (op *operation) failure(storage error) error {
	panics.Raise(storage) // ends this session only
	if op.transfer != nil && op.transfer.Result().Complete {
		return nil // what stops the transfer now comes too late
	}
	stopped := context.Cause(op.Context)
	if errors.Is(stopped, context.Canceled) && !errors.Is(stopped, dataconn.ErrDisconnected) {
		stopped = reply.ErrShuttingDown // the session ends
	}
	if t := op.transfer; t != nil && (t.Connected() || storage == nil) {
		switch cause := cmp.Or(t.Err(), stopped); {
		case cause != nil:
			return &reply.TransferError{Err: cause, Unopened: !t.Connected()}
		case !t.Connected():
			return &reply.NoDataConnectionError{
				Port: op.transfer.port(), Err: cmp.Or(t.Result().Connection, errUnknown)}
		}
	}
	if storage != nil && stopped != nil {
		return stopped
	}
	return storage
}

// errUnknown stands for a reason that is not known.
var errUnknown = errors.New("no reason is known")

// errorReply is the reply to an error. Package reply has its code and its message. A user who may replace no file
// learns that, because another name helps then.
func (s *session) errorReply(err error) wire.Reply {
	locale := s.identity.locale
	code, id, args := locale.ForError(err)
	if id == i18n.AlreadyExists && s.op != nil && s.op.replaces() && s.identity.login.NoOverwrite() {
		id = i18n.OverwriteDenied
	}
	var names []string
	if of, ok := errors.AsType[*reply.FileError](err); ok && reply.AboutFile(id) {
		names = of.Names
	}
	sentences := []string{locale.Words(id, args...)}
	if refusal, ok := errors.AsType[*inspect.Refusal](err); ok && id == i18n.FileRefused {
		sentences[0] = locale.WordsWith(id, refusal.Text(locale.Tag()))
	}
	if fate := s.fateOfUpload(id); fate != "" {
		sentences = append(sentences, locale.Words(fate))
	}
	return wire.NewReply(code, locale.About(names, sentences...))
}

// fateOfUpload is the message on what has become of the bytes of an upload that has failed, empty where there is
// none, or where the server does not know. What has stopped an upload may have come while S3 stored it. That nothing
// was stored is said of the file. Where S3 did not confirm the record of an upload, it can perhaps be resumed later.
func (s *session) fateOfUpload(failure i18n.ID) i18n.ID {
	switch {
	case s.op == nil || s.op.transfer == nil || !s.op.transfer.upload:
	case s.op.Kept.Load():
		return i18n.UploadKept
	case failure == i18n.TransferInterrupted, failure == i18n.TransferStalled:
		return i18n.NothingStored
	}
	return ""
}

// refused tells the observers where a limit is the reason of an error, and returns whether one is.
func (s *session) refused(err error) bool {
	reached, ok := errors.AsType[*limits.Error](err)
	if ok {
		s.observers.Refused(reached.Tenant, reached.Limit)
	}
	return ok
}
