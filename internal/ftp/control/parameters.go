package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// representation is TYPE. A client that keeps line ends gets every file as TYPE I does.
func representation(id *identity, set *settings, arg string) (wire.Reply, error) {
	switch {
	case !set.parameters.SetType(arg):
		return id.reply(504, i18n.ParameterNotImplemented, "TYPE")
	case set.parameters.ASCII:
		set.parameters.ASCII = id.login.Compatibility.ASCII != config.KeepLineEnds
		return id.reply(200, i18n.TypeASCII)
	default:
		return id.reply(200, i18n.TypeBinary)
	}
}

// only is the function of a command that knows a single parameter: MODE S and STRU F (RFC 959 3.4.1 and 3.1.2).
func only(verb, parameter string, id i18n.ID) settingsCommand {
	return func(client *identity, _ *settings, arg string) (wire.Reply, error) {
		if wire.Upper(arg) != parameter {
			return client.reply(504, i18n.ParameterNotImplemented, verb)
		}
		return client.reply(200, id)
	}
}

// rest is REST (RFC 3659 5.3). The transfer refuses an offset that it cannot begin at.
func rest(id *identity, set *settings, arg string) (wire.Reply, error) {
	if !set.parameters.SetOffset(arg) {
		return wire.Reply{}, errSyntax
	}
	return id.reply(350, i18n.RestartAccepted, arg)
}

// rang is RANG (draft-bryan-ftp-range 3), for the RETR or HASH that follows.
func rang(id *identity, set *settings, arg string) (wire.Reply, error) {
	switch {
	case !set.parameters.SetRange(arg):
		return wire.Reply{}, errSyntax
	case set.parameters.ByteRange == nil:
		return id.reply(350, i18n.OK)
	default:
		first, last, _ := strings.Cut(arg, " ")
		return id.reply(350, i18n.RangeAccepted, first, last)
	}
}

// allo is ALLO (RFC 959 4.1.3). The size is a hint for the storage and the log: clients send the size of the local
// file, which has other line ends, or that of a buffer. In TYPE I no file is smaller than that, so one that is larger
// than the configuration allows is refused, and so is the transfer that follows. The code is 200, because some cameras
// repeat ALLO after 202.
func allo(id *identity, set *settings, arg string) (wire.Reply, error) {
	size, ok := wire.ParseALLO(arg)
	if !ok {
		return wire.Reply{}, errSyntax
	}
	set.parameters.Announced = size
	if err := id.login.View.CheckSize(size); err != nil && !set.parameters.ASCII {
		return id.reply(552, i18n.FileSizeLimit, id.locale.Size(id.login.View.MaxSize))
	}
	return id.reply(200, i18n.AllocationNotNeeded)
}
