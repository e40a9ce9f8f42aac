package control

import (
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/names/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// nameCodec translates the pathnames of the client.
func (s *session) nameCodec() pathname.Codec {
	return pathname.Codec{Rules: s.login.NameRules(), UTF8: s.locale.UTF8}
}

// resolve returns the absolute pathname in UTF-8 that a command's argument means.
func (s *session) resolve(arg string) (string, error) {
	s.op.fileName = s.nameCodec().Echo(s.workingDirectory(), arg)
	return s.nameCodec().Resolve(s.workingDirectory(), arg)
}

// resolver finds the pathnames of this client in a storage.
func (s *session) resolver(storage *view.Files) *pathname.Resolver {
	return &pathname.Resolver{Rules: s.login.NameRules(), WorkingDirectory: s.workingDirectory(),
		StatDir: storage.StatDir}
}

// commandText is a command line as the client meant it, and the answers to the Telnet options that it asks for. A
// client whose charset has a letter with the byte 255 means that letter, and not Telnet's IAC.
func (s *session) commandText(l wire.Line) (text string, refusals []byte) {
	if l.Literal == "" || s.login == nil || !s.nameCodec().HasLetterIAC() {
		return l.Text, l.Refusals
	}
	return l.Literal, l.Refusals[:l.Certain]
}
