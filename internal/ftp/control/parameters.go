package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// representation is TYPE. A client that keeps line ends gets every file as TYPE I does.
func (s *session) representation(arg string) (wire.Reply, error) {
	switch {
	case !s.settings.next.parameters.SetType(arg):
		return s.reply(504, i18n.ParameterNotImplemented, "TYPE")
	case s.settings.next.parameters.ASCII:
		s.settings.next.parameters.ASCII = s.identity.login.Compatibility.ASCII != config.KeepLineEnds
		return s.reply(200, i18n.TypeASCII)
	default:
		return s.reply(200, i18n.TypeBinary)
	}
}

// mode is MODE: streams only (RFC 959 3.4.1).
func (s *session) mode(mode string) (wire.Reply, error) {
	if wire.Upper(mode) != "S" {
		return s.reply(504, i18n.ParameterNotImplemented, "MODE")
	}
	return s.reply(200, i18n.ModeStream)
}

// stru is STRU: files only (RFC 959 3.1.2).
func (s *session) stru(structure string) (wire.Reply, error) {
	if wire.Upper(structure) != "F" {
		return s.reply(504, i18n.ParameterNotImplemented, "STRU")
	}
	return s.reply(200, i18n.StructureFile)
}

// rest is REST (RFC 3659 5.3). The transfer refuses an offset that it cannot begin at.
func (s *session) rest(arg string) (wire.Reply, error) {
	if !s.settings.next.parameters.SetOffset(arg) {
		return s.syntaxError()
	}
	return s.reply(350, i18n.RestartAccepted, arg)
}

// rang is RANG (draft-bryan-ftp-range 3), for the RETR or HASH that follows.
func (s *session) rang(arg string) (wire.Reply, error) {
	switch {
	case !s.settings.next.parameters.SetRange(arg):
		return s.syntaxError()
	case s.settings.next.parameters.ByteRange == nil:
		return s.reply(350, i18n.OK)
	default:
		first, last, _ := strings.Cut(arg, " ")
		return s.reply(350, i18n.RangeAccepted, first, last)
	}
}

// allo is ALLO (RFC 959 4.1.3). The size is a hint for the storage and the log: clients send the size of the local
// file, which has other line ends, or that of a buffer. In TYPE I no file is smaller than that, so one that is larger
// than the configuration allows is refused, and so is the transfer that follows. The code is 200, because some cameras
// repeat ALLO after 202.
func (s *session) allo(arg string) (wire.Reply, error) {
	size, ok := wire.ParseALLO(arg)
	if !ok {
		return s.syntaxError()
	}
	s.settings.next.parameters.Announced = size
	if err := s.identity.login.View.CheckSize(size); err != nil && !s.settings.next.parameters.ASCII {
		return s.reply(552, i18n.FileSizeLimit, s.identity.locale.Size(s.identity.login.View.MaxSize))
	}
	return s.reply(200, i18n.AllocationNotNeeded)
}
