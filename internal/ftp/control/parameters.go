package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// representation handles TYPE. If the client must keep line ends, text files are transferred like binary files.
func representation(id *identity, state *commandState, arg string) (wire.Reply, error) {
	switch {
	case !state.parameters.SetType(arg):
		return id.reply(504, i18n.ParameterNotImplemented, "TYPE")
	case state.parameters.ASCII:
		state.parameters.ASCII = id.login.Compatibility.ASCII != config.KeepLineEnds
		return id.reply(200, i18n.TypeASCII)
	default:
		return id.reply(200, i18n.TypeBinary)
	}
}

// only returns a command that accepts a single parameter: MODE S and STRU F (RFC 959, 3.4.1 and 3.1.2).
func only(verb, parameter string, id i18n.ID) stateCommand {
	return func(client *identity, _ *commandState, arg string) (wire.Reply, error) {
		if wire.Upper(arg) != parameter {
			return client.reply(504, i18n.ParameterNotImplemented, verb)
		}
		return client.reply(200, id)
	}
}

// rest handles REST (RFC 3659, 5.3). The transfer that follows checks whether it can begin at the offset.
func rest(id *identity, state *commandState, arg string) (wire.Reply, error) {
	if !state.parameters.SetOffset(arg) {
		return wire.Reply{}, errSyntax
	}
	return id.reply(350, i18n.RestartAccepted, arg)
}

// rang handles RANG (draft-bryan-ftp-range, 3), which applies to the RETR or HASH that follows.
func rang(id *identity, state *commandState, arg string) (wire.Reply, error) {
	switch {
	case !state.parameters.SetRange(arg):
		return wire.Reply{}, errSyntax
	case state.parameters.ByteRange == nil:
		return id.reply(350, i18n.OK)
	default:
		first, last, _ := strings.Cut(arg, " ")
		return id.reply(350, i18n.RangeAccepted, first, last)
	}
}

// allo handles ALLO (RFC 959, 4.1.3). The size is a hint for the storage and the log, because clients send the
// size of the local file, which may have other line ends, or the size of a buffer. In TYPE I the file is at least
// this large, so a size over the configured limit is refused, and so is the upload that follows. The code is 200,
// because some cameras repeat ALLO after 202.
func allo(id *identity, state *commandState, arg string) (wire.Reply, error) {
	size, ok := wire.ParseALLO(arg)
	if !ok {
		return wire.Reply{}, errSyntax
	}
	state.parameters.Announced = size
	if err := id.login.View.CheckSize(size); err != nil && !state.parameters.ASCII {
		return id.reply(552, i18n.FileSizeLimit, id.locale.Size(id.login.View.MaxSize))
	}
	return id.reply(200, i18n.AllocationNotNeeded)
}
