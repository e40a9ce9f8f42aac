package control

import (
	"maps"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/vfs"
	"github.com/babelftp/babelftp/internal/wire"
)

// nameRules say how the names of the logged-in user are written.
func (s *session) nameRules() pathname.Rules {
	return pathname.Rules{
		Encoding:           s.login.Tenant.Encoding,
		DirectoryEncodings: s.login.DirectoryEncodings,
		Normalization:      s.login.Tenant.Normalization,
	}
}

// codec translates the pathnames of the client.
func (s *session) codec() pathname.Codec {
	return pathname.Codec{Rules: s.nameRules(), UTF8: s.locale.UTF8}
}

// resolve returns the absolute pathname in UTF-8 that a command's argument means.
func (s *session) resolve(arg string) (string, error) {
	return s.codec().Resolve(s.workingDirectory(), arg)
}

// resolver finds the pathnames of this client in a storage.
func (s *session) resolver(storage vfs.Storage) *pathname.Resolver {
	return &pathname.Resolver{Rules: s.nameRules(), WorkingDirectory: s.workingDirectory(), StatDir: storage.StatDir}
}

// commandText is a command line as the client has meant it, and the answers to the
// Telnet options that it asks for. Where the byte 255 is a letter, such as the
// last of the alphabet in windows-1251, few clients know that it is Telnet's IAC as
// well and has to be doubled (RFC 854). From them it would go, and with it what
// follows if that is a command of Telnet.
func (s *session) commandText(l wire.Line) (text string, refusals []byte) {
	if l.Literal == "" || s.login == nil {
		return l.Text, l.Refusals
	}
	for _, encoding := range append(slices.Collect(maps.Values(s.login.DirectoryEncodings)), s.login.Tenant.Encoding) {
		if s.locale.UTF8 && !encoding.Raw() {
			continue
		}
		if _, err := encoding.Decode("\xff"); err == nil {
			return l.Literal, l.Refusals[:l.Certain]
		}
	}
	return l.Text, l.Refusals
}

// quote writes a pathname as 257 shows it (RFC 959 appendix II).
func quote(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
