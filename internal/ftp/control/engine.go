package control

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// startEngine starts the engine where there is none: for a login, or because stopIdleEngine has ended it.
func (s *session) startEngine() (err error) {
	switch {
	case s.engine != nil:
	case s.identity.login == nil:
		s.engine, err = s.server.engines.Start(s.ctx, s.authenticate)
	default:
		s.engine, err = s.server.engines.Resume(s.ctx, s.directory)
	}
	return err
}

// engineIdle is how long a session waits for a command before its engine ends, which takes 13 KiB. To start another
// one takes some 30 us.
const engineIdle = 10 * time.Second

// stopIdleEngine ends the engine of a session that waits. Between commands the engine keeps the working directory,
// which the session takes over, and what RNFR has named.
func (s *session) stopIdleEngine() {
	if s.engine == nil || s.settings.renaming != nil {
		return
	}
	s.directory = s.workingDirectory()
	s.stopEngine()
}

// stopEngine ends the engine with its transfer and its login.
func (s *session) stopEngine() {
	if s.engine != nil {
		s.engine.Stop()
		s.engine = nil
	}
}

// engineFailed ends the session: without its engine it can do nothing. The error is for the observers.
func (s *session) engineFailed(err error) (wire.Reply, error) {
	s.dialogue.closing = true
	s.log.Error("FTP engine failed; the session ends", "command", s.op.command.Name, "err", err)
	return wire.NewReply(421, s.identity.text(i18n.InternalError)), err
}

// workingDirectory is the engine's, which keeps it while it runs.
func (s *session) workingDirectory() string {
	if s.engine == nil {
		return s.directory
	}
	return s.engine.WorkingDirectory()
}

// A success makes the reply to what the engine has done, for which the engine has said r.
type success func(s *session, r wire.Reply) wire.Reply

// successes is what clients read when the engine has succeeded, by the verb that it got.
func successes() map[string]success {
	say := func(code int, id i18n.ID) success {
		return func(s *session, _ wire.Reply) wire.Reply { return wire.NewReply(code, s.identity.text(id)) }
	}
	return map[string]success{
		"PASS":       func(s *session, _ wire.Reply) wire.Reply { return s.loggedIn() },
		"CWD":        (*session).directoryChanged,
		"CDUP":       say(250, i18n.DirectoryChanged),
		"MKD":        (*session).directoryCreated,
		"SITE MKDIR": say(250, i18n.DirectoryCreated),
		"RMD":        say(250, i18n.DirectoryRemoved),
		"SITE RMDIR": say(250, i18n.DirectoryRemoved),
		"DELE":       say(250, i18n.FileDeleted),
		"RNFR":       say(350, i18n.RenameReady),
		"RNTO":       say(250, i18n.Renamed),
		"SIZE":       func(_ *session, r wire.Reply) wire.Reply { return r }, // a number (RFC 3659 4)
	}
}

// Classes of codes (RFC 959 4.2.1).
const (
	firstIntermediate = 300
	firstFailure      = 400
)

// translate turns a reply of the engine into the one for the client, or into an error. Only the class of its code
// counts, because what the storage and the data connection have done is known here, and no text of the engine is for a
// client. Nothing that the engine says decides how a transfer has ended.
func (s *session) translate(verb string, r wire.Reply) (wire.Reply, error) {
	t := s.op.transfer
	switch begun := t != nil && t.begun; {
	case begun && t.Result().Complete:
		return s.reply(226, i18n.TransferComplete)
	case begun || r.Code >= firstFailure:
		if err := s.op.failure(s.op.Err); err != nil {
			return wire.Reply{}, err
		}
	case s.server.successes[verb] != nil:
		return s.server.successes[verb](s, r), nil
	}
	return s.unexpected(r), nil
}

// unexpected is for what the engine should not say, because the session has checked before or answers itself. Nothing
// of it reaches the client.
func (s *session) unexpected(r wire.Reply) wire.Reply {
	s.log.Error("unexpected reply of the FTP engine; report it as a bug",
		"command", s.op.command.Name, "text", strings.Join(r.Lines, "\n"))
	return wire.NewReply(451, s.identity.text(i18n.CommandFailed))
}

// directoryCreated is the reply to MKD.
func (s *session) directoryCreated(wire.Reply) wire.Reply {
	return s.named(s.op.Path, i18n.DirectoryCreated)
}

// named is 257, with a pathname first (RFC 959 4.2.2 and appendix II).
func (s *session) named(pathname string, id i18n.ID) wire.Reply {
	return wire.NewReply(257, wire.Quote(s.identity.nameCodec().EncodePath(pathname))+" "+s.identity.locale.Words(id))
}

// directoryChanged is the reply to CWD. The engine has taken the name as the client wrote it, and the storage may have
// it otherwise.
func (s *session) directoryChanged(wire.Reply) wire.Reply {
	s.engine.SetWorkingDirectory(s.op.Path)
	return wire.NewReply(250, s.identity.text(i18n.DirectoryChanged))
}

// forward gives the engine a command, with a pathname or nothing, because its lines are shorter than those of
// clients. It tells the client that a transfer begins and returns the final reply, in the client's language, or an
// error.
func (s *session) forward(verb, argument string) (wire.Reply, error) {
	err := s.startEngine()
	if err == nil {
		err = s.engine.Send(&s.op.Operation, verb, argument)
	}
	if err != nil {
		return s.engineFailed(err)
	}
	replies := s.engine.Replies()
	for {
		r, ok := await(s, replies, s.engine.Done())
		if !ok {
			return s.engineFailed(errors.Join(s.engine.Err(), context.Cause(s.ctx)))
		}
		if !s.transferBegins(r) {
			return s.translate(verb, r)
		}
		select {
		case r = <-replies: // a small file is sent by now
			if !s.transferBegins(r) {
				return s.translate(verb, r)
			}
		default:
		}
		s.flush()
	}
}
