package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
)

// feat handles FEAT (RFC 2389, 3). Only the first line of the reply is translated.
func feat(id *identity, state *commandState, _ string) (wire.Reply, error) {
	features := reply.Features{TLS: state.offersTLS, Languages: id.locale.Tags("*"),
		Hash: state.algorithm, Facts: state.facts.Feature()}
	lines := append([]string{id.text(i18n.FeaturesIntro)}, features.Lines()...)
	return wire.NewReply(211, append(lines, "End")...), nil
}

// opts handles OPTS (RFC 2389, 4).
func opts(id *identity, state *commandState, arg string) (wire.Reply, error) {
	name, options, hasOptions := strings.Cut(arg, " ")
	words := strings.TrimRight(options, " ")
	switch wire.Upper(name) {
	case "UTF8", "UTF-8":
		return id.optsUTF8(words)
	case "HASH":
		return optsHash(id, state, words)
	case "MLST": // RFC 3659, 7.8 has no space after MLST
		return optsMLST(id, state, options, hasOptions)
	default:
		return id.reply(501, i18n.OptionUnknown, "OPTS")
	}
}

// optsUTF8 handles OPTS UTF8, which many clients send although no RFC defines it.
func (id *identity) optsUTF8(options string) (wire.Reply, error) {
	switch wire.Upper(options) {
	case "", "ON", "NLST": // draft-ietf-ftpext-utf-8-option has NLST
		id.locale.Choice = pathname.UTF8
		if id.locale.Charset().Raw() {
			return id.reply(200, i18n.OK) // file names of a mirror are passed through unchanged
		}
		return id.reply(200, i18n.UTF8On)
	case "OFF":
		if id.charset().UTF8() {
			return id.reply(504, i18n.UTF8StaysOn)
		}
		id.locale.Choice = id.charset().BeforeUTF8()
		return id.reply(200, i18n.UTF8Off, id.locale.Charset().DisplayName())
	default:
		return id.reply(501, i18n.OptionUnknown, "OPTS UTF8")
	}
}

// maxSoftware limits the length in bytes of the client's software name, which appears in the log.
const maxSoftware = 64

// clnt handles CLNT, which names the client software. Later log lines of the session include the name.
func clnt(id *identity, _ *commandState, name string) (wire.Reply, error) {
	id.software = strings.ToValidUTF8(name[:min(len(name), maxSoftware)], "")
	return id.reply(200, i18n.OK)
}

// syst handles SYST. The reply is never translated because clients parse it.
func syst(*identity, *commandState, string) (wire.Reply, error) {
	return wire.NewReply(215, "UNIX Type: L8"), nil
}
