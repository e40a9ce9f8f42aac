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

// First codes of the reply classes (RFC 959, 4.2.1).
const (
	firstIntermediate = 300
	firstFailure      = 400
)

// finish ends the current command, if any, with r, or with a reply made from err if r is empty. The observers get
// the outcome before the client gets the reply.
func (s *session) finish(r wire.Reply, err error) {
	if errors.Is(err, dataconn.ErrAborted) {
		s.aborted = true
	}
	s.logEngineError(err)
	if r.Code == 0 {
		r = s.errorReply(err)
	}
	// If a limit has cut the session, only its last reply reports the limit: this reply, or the reply of
	// sendLastReply.
	if last := s.dialogue.closing || r.Code == 421; last || s.ctx.Err() == nil {
		s.reportLimit(err)
	}
	o, ctx := s.outcome(r, err), s.ctx
	if s.op != nil {
		ctx, s.op.ended = s.op.Context, true
		if s.op.Names != nil && !s.dialogue.closing { // otherwise the command may still be running
			s.identity.setCharset(s.op.Names.Choice)
		}
	}
	s.report(ctx, o)
	s.flush()
	s.endOperation()
}

// logEngineError logs engine errors that need the operator, or are bugs.
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

// outcome returns the outcome of the current command. All observers get this value.
func (s *session) outcome(r wire.Reply, err error) *report.Outcome {
	o := &report.Outcome{Code: r.Code, Lines: r.Lines, Language: s.identity.locale.Tag(), Err: err,
		Pending: r.Code >= firstIntermediate && r.Code < firstFailure}
	op := s.op
	if op == nil || op.ended { // an observer panicked after the outcome was reported
		return o
	}
	n := op.recordedNote()
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
	if o.Transfer = op.reported; o.Transfer != nil {
		if n.Path != "" {
			o.Transfer.Path, o.Transfer.URI = n.Path, n.URI
		}
		ended := op.data.Result()
		o.Transfer.Complete, o.Transfer.Connection, o.Transfer.Storage =
			ended.Complete, ended.Connection, ended.Storage
	}
	return o
}

// storedFile returns what S3 reported about an uploaded or downloaded file, or nil if that is unknown.
func storedFile(file engine.File) *report.StoredFile {
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	stored := &report.StoredFile{Size: info.Size()}
	if of, ok := info.(contract.Tagged); ok {
		stored.ETag = of.ETag()
	}
	if of, ok := info.(contract.Receipt); ok {
		stored.Checksum, stored.RequestID, stored.Verified = of.Checksum(), of.RequestID(), of.Verified()
	}
	return stored
}

// sendReply sends a reply outside a command.
func (s *session) sendReply(code int, id i18n.ID, args ...string) {
	s.finish(s.reply(code, id, args...))
}

// endOperation releases the context, storage and data connection of the finished command, because most sessions
// are idle. If the session was cut, the command may still be running, so the operation is kept.
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

// report reports an outcome to the observers and buffers its reply.
func (s *session) report(ctx context.Context, o *report.Outcome) {
	s.identify()
	s.observers.CommandEnded(ctx, o)
	s.dialogue.buffer(wire.NewReply(o.Code, o.Lines...))
}

// failure returns the reason why the command failed, given the error of the storage or the login. All commands use
// the same order: what stopped the command, then an error of its data connection, then the storage.
func (op *operation) failure(storage error) error {
	panics.Raise(storage) // only this session ends
	if op.data != nil && op.data.Result().Complete {
		return nil // a later stop changes nothing
	}
	stopped := context.Cause(op.Context)
	if errors.Is(stopped, context.Canceled) && !errors.Is(stopped, dataconn.ErrDisconnected) {
		stopped = reply.ErrShuttingDown // the session ends
	}
	if t := op.data; t != nil && (t.Connected() || storage == nil) {
		switch cause := cmp.Or(t.Err(), stopped); {
		case cause != nil:
			return &reply.TransferError{Err: cause, Unopened: !t.Connected()}
		case !t.Connected():
			return &reply.NoDataConnectionError{
				Port: op.data.port(), Err: cmp.Or(t.Result().Connection, errUnknown)}
		}
	}
	if storage != nil && stopped != nil {
		return stopped
	}
	return storage
}

// errUnknown is reported if a data connection failed without an error.
var errUnknown = errors.New("unknown reason")

// errorReply returns the reply to an error. Package reply maps it to a code and a message. A user who may not overwrite
// files is told so, because uploading under another name helps.
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

// fateOfUpload returns the message about the bytes of a failed upload, or an empty ID if there are no bytes or if
// their fate is unknown. An upload that was stopped may have been stored at the same moment. NothingStored refers
// to the file; if S3 did not confirm the record of the upload, the client may still be able to resume it.
func (s *session) fateOfUpload(failure i18n.ID) i18n.ID {
	switch {
	case s.op == nil || s.op.data == nil || !s.op.data.upload:
	case s.op.Kept.Load():
		return i18n.UploadKept
	case failure == i18n.TransferInterrupted, failure == i18n.TransferStalled, failure == i18n.HashMismatch:
		return i18n.NothingStored
	}
	return ""
}

// reportLimit reports a reached limit to the observers, and returns whether err is one.
func (s *session) reportLimit(err error) bool {
	reached, ok := errors.AsType[*limits.Error](err)
	if ok {
		s.observers.Refused(reached.Tenant, reached.Limit)
	}
	return ok
}
