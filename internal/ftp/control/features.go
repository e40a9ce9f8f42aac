package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
)

// feat is FEAT (RFC 2389 3). Only its first line is translated.
func (s *session) feat(string) (wire.Reply, error) {
	features := reply.Features{TLS: s.cfg.TLS != nil, Languages: s.identity.locale.Tags("*"),
		Hash: s.settings.algorithm, Facts: s.settings.facts.Feature()}
	lines := append([]string{s.identity.text(i18n.FeaturesIntro)}, features.Lines()...)
	return wire.NewReply(211, append(lines, "End")...), nil
}

// opts is OPTS (RFC 2389 4).
func (s *session) opts(arg string) (wire.Reply, error) {
	name, options, hasOptions := strings.Cut(arg, " ")
	words := strings.TrimRight(options, " ")
	switch wire.Upper(name) {
	case "UTF8", "UTF-8":
		return s.optsUTF8(words)
	case "HASH":
		return s.optsHash(words)
	case "MLST": // RFC 3659 7.8 has no SP there
		return s.optsMLST(options, hasOptions)
	default:
		return s.reply(501, i18n.OptionUnknown, "OPTS")
	}
}

// optsUTF8 is OPTS UTF8, which no RFC defines and many clients send.
func (s *session) optsUTF8(options string) (wire.Reply, error) {
	switch wire.Upper(options) {
	case "", "ON", "NLST": // draft-ietf-ftpext-utf-8-option has NLST
		s.identity.locale.Choice = pathname.UTF8
		if s.identity.locale.Charset().Raw() {
			return s.reply(200, i18n.OK) // a mirror's names are what they are
		}
		return s.reply(200, i18n.UTF8On)
	case "OFF":
		if s.identity.charset().UTF8() {
			return s.reply(504, i18n.UTF8StaysOn)
		}
		s.identity.locale.Choice = s.identity.charset().BeforeUTF8()
		return s.reply(200, i18n.UTF8Off, s.identity.locale.Charset().DisplayName())
	default:
		return s.reply(501, i18n.OptionUnknown, "OPTS UTF8")
	}
}
