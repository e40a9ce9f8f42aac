package control

import (
	"regexp"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/wire"
)

// A rule says what becomes of one reply of the engine: its code and the text
// that follows, or the beginning of it, choose the answer. A test holds the
// table against the engine's source.
type rule struct {
	code   int
	text   *regexp.Regexp
	answer func(s *session, match []string) wire.Reply
}

// The answers that several rules give.

// says is a message without arguments.
func says(code int, id i18n.ID) func(*session, []string) wire.Reply {
	return func(s *session, _ []string) wire.Reply { return wire.NewReply(code, s.text(id)) }
}

// verbatim is protocol text, the same in every language.
func verbatim(code int) func(*session, []string) wire.Reply {
	return func(_ *session, match []string) wire.Reply { return wire.NewReply(code, match[0]) }
}

// storageFailed is told by the storage's error, which the adapter has noted.
func storageFailed(s *session, match []string) wire.Reply {
	if s.noted == nil {
		return unexpected(s, match)
	}
	return s.failure(s.noted)
}

func transferFailed(s *session, _ []string) wire.Reply       { return s.transferFailed() }
func dataConnectionFailed(s *session, _ []string) wire.Reply { return s.dataConnectionFailed() }

// unexpected is for what the engine should not say, because the session has
// checked before or answers itself. Nothing of it reaches the client.
func unexpected(s *session, match []string) wire.Reply {
	s.log.Error("unexpected reply of the engine", "command", s.verb, "text", match[0])
	return wire.NewReply(451, s.text(i18n.InternalError))
}

// currentDirectory is 257 after PWD: the pathname comes first (RFC 959 4.2.2 and
// appendix II).
func currentDirectory(s *session, _ []string) wire.Reply {
	return wire.NewReply(257, quote(s.codec().EncodePath(s.workingDirectory()))+" "+s.text(i18n.CurrentDirectory))
}

// directoryCreated is 257 after MKD, with the pathname that the storage has.
func directoryCreated(s *session, _ []string) wire.Reply {
	return wire.NewReply(257, quote(s.codec().EncodePath(s.located))+" "+s.text(i18n.DirectoryCreated))
}

// directoryChanged makes the directory that was found the working directory of
// the engine, which has taken it as the client wrote it.
func directoryChanged(s *session, _ []string) wire.Reply {
	s.engine.client.SetPath(escapePathname(s.located))
	return wire.NewReply(250, s.text(i18n.DirectoryChanged))
}

// rules is the table, in the order in which it is searched.
func rules() []rule {
	row := func(code int, text string, answer func(*session, []string) wire.Reply) rule {
		return rule{code, regexp.MustCompile(`^(?s:` + text + `)$`), answer}
	}
	return []rule{
		// Login.
		row(331, `OK`, func(s *session, _ []string) wire.Reply {
			return wire.NewReply(331, s.text(i18n.PasswordRequired, s.name))
		}),
		row(230, `Password ok, continue`, func(s *session, _ []string) wire.Reply { return s.loggedIn() }),
		row(530, `Authentication error: .*`, func(s *session, _ []string) wire.Reply { return s.loginFailed() }),
		row(530, `Please login with USER and PASS`, says(530, i18n.NotLoggedIn)),

		// Parameters.
		row(200, `OK`, says(200, i18n.OK)),
		row(200, `Good to know`, says(200, i18n.OK)),
		row(215, `UNIX Type: L8`, verbatim(215)),
		row(200, `Using stream mode`, says(200, i18n.ModeStream)),
		row(504, `Unimplemented MODE type`, parameterNotImplemented),
		row(504, `Unsupported mode`, parameterNotImplemented),

		// Directories.
		row(250, `CD worked on .*`, directoryChanged),
		row(550, `Can't change directory to .*: Not a Directory`, says(550, i18n.NotADirectory)),
		row(550, `CD issue: .*`, storageFailed),
		row(250, `CDUP worked on .*`, says(250, i18n.DirectoryChanged)),
		row(550, `CDUP issue: .*`, storageFailed),
		row(257, `".*" is the current directory`, currentDirectory),
		row(257, `Created dir ".*"`, directoryCreated),
		row(550, `Could not create ".*" : .*`, storageFailed),
		row(250, `Created dir .*`, says(250, i18n.DirectoryCreated)),
		row(550, `Couldn't create dir .*: .*`, storageFailed),
		row(250, `Deleted dir .*`, says(250, i18n.DirectoryRemoved)),
		row(550, `Could not delete dir .*: .*`, storageFailed),
		row(250, `Removed dir .*`, says(250, i18n.DirectoryRemoved)),
		row(550, `Couldn't remove dir .*: .*`, storageFailed),

		// Files.
		row(250, `Removed file .*`, says(250, i18n.FileDeleted)),
		row(550, `Couldn't delete .*: .*`, storageFailed),
		row(350, `Sure, give me a target`, says(350, i18n.RenameReady)),
		row(250, `Done !`, says(250, i18n.Renamed)),
		row(550, `Couldn't rename .* to .*: .*`, storageFailed),
		row(503, `RNFR is expected before RNTO`, says(503, i18n.RenameFromFirst)),
		row(550, `.* is a directory`, says(550, i18n.IsADirectory)),
		row(213, `\d+`, verbatim(213)), // SIZE and MDTM
		row(213, `Modify=.*; .*`, verbatim(213)),
		row(550, `Couldn't set mtime .* for .*, err: .*`, storageFailed),
		row(550, `Couldn't access .*: .*`, storageFailed),

		// Transfers.
		row(150, `Using transfer connection`, transferStarting),
		row(226, `Closing transfer connection`, says(226, i18n.TransferComplete)),
		row(550, `unable to open transfer: no transfer connection`, dataConnectionFailed),
		row(425, `.*`, dataConnectionFailed),
		row(550, `Issue during transfer close: .*`, transferFailed),
		row(550, `Issue during transfer: .*`, transferFailed),
		row(550, `Could not access file: .*`, storageFailed),
		row(550, `Could not seek file: .*`, storageFailed),
		row(450, `Could not list: .*`, storageFailed),
		row(550, `Could not list: .*`, storageFailed),
		row(451, `Could not list: .*`, storageFailed),
	}
}

func parameterNotImplemented(s *session, _ []string) wire.Reply {
	return wire.NewReply(504, s.text(i18n.ParameterNotImplemented, s.verb))
}

// transferStarting names the file that STOU chose (RFC 1123 4.1.2.9).
func transferStarting(s *session, _ []string) wire.Reply {
	if name := s.transfer.fileName; name != "" {
		return wire.NewReply(150, "FILE: "+s.codec().EncodeName(s.workingDirectory(), name))
	}
	return wire.NewReply(150, s.text(i18n.TransferStarting))
}

// rewrite turns a reply of the engine into one for the client.
func (s *session) rewrite(r wire.Reply) wire.Reply {
	text := strings.Join(r.Lines, "\n")
	for _, rule := range s.server.rules {
		if rule.code != r.Code {
			continue
		}
		if match := rule.text.FindStringSubmatch(text); match != nil {
			return rule.answer(s, match)
		}
	}
	return unexpected(s, []string{text})
}
