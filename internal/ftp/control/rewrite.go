package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/syntax"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// startEngine starts the engine where there is none.
func (s *session) startEngine() (err error) {
	if s.engine == nil {
		s.engine, err = engine.Start(s.ctx, engine.Config{
			Local: s.conn.LocalAddr(), Remote: s.conn.RemoteAddr(),
			Login:       s.authenticate,
			Placeholder: &s.server.placeholder,
		})
	}
	return err
}

// stopEngine ends the engine with its transfer and its login.
func (s *session) stopEngine() {
	if s.engine != nil {
		s.engine.Stop()
		s.engine = nil
	}
}

// engineFailed ends the session: without its engine it can do nothing.
func (s *session) engineFailed(err error) wire.Reply {
	s.closing = true
	s.log.Error("FTP engine failed; the session ends", "command", s.verb, "err", err)
	return wire.NewReply(421, s.text(i18n.InternalError))
}

// workingDirectory is the engine's, which keeps it.
func (s *session) workingDirectory() string { return s.engine.WorkingDirectory() }

// rewrite turns a reply of the engine into one for the client.
func (s *session) rewrite(r wire.Reply) wire.Reply {
	switch answer := s.server.rules.Answer(r); answer.Meaning {
	case engine.Message:
		text := s.text(answer.Text)
		if reply.AboutFile(answer.Text) {
			text = s.locale.About(s.op.fileName, text)
		}
		return wire.NewReply(answer.Code, text)
	case engine.Verbatim:
		return wire.NewReply(r.Code, r.Lines...)
	case engine.LoggedIn:
		return s.loggedIn()
	case engine.LoginFailed:
		return s.loginFailed()
	case engine.ParameterNotImplemented:
		return wire.NewReply(504, s.text(i18n.ParameterNotImplemented, s.verb))
	case engine.CurrentDirectory: // the pathname comes first (RFC 959 4.2.2 and appendix II)
		return wire.NewReply(
			257, syntax.Quote(s.nameCodec().EncodePath(s.workingDirectory()))+" "+s.text(i18n.CurrentDirectory))
	case engine.DirectoryCreated:
		return wire.NewReply(257, syntax.Quote(s.nameCodec().EncodePath(s.op.Path))+" "+s.text(i18n.DirectoryCreated))
	case engine.DirectoryChanged: // the engine has taken it as the client wrote it
		s.engine.SetWorkingDirectory(s.op.Path)
		return wire.NewReply(250, s.text(i18n.DirectoryChanged))
	case engine.TransferStarting:
		return s.transferStarting()
	case engine.TransferEnded:
		return s.transferEnded()
	case engine.DataConnectionFailed:
		return s.dataConnectionFailed()
	case engine.StorageFailed:
		if s.op.Err != nil {
			return s.errorReply(s.outcome(s.op.Err))
		}
	}
	return s.unexpected(r)
}

// unexpected is for what the engine should not say, because the session has checked before or answers itself. Nothing
// of it reaches the client.
func (s *session) unexpected(r wire.Reply) wire.Reply {
	s.log.Error("unexpected reply of the FTP engine; report it as a bug",
		"command", s.verb, "text", strings.Join(r.Lines, "\n"))
	return wire.NewReply(451, s.text(i18n.LocalError))
}
