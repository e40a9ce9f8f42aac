package control

import (
	"slices"
	"strings"

	"github.com/babelftp/babelftp/i18n"
)

// feat is FEAT (RFC 2389 3). The lines between the first and the last are not
// translated, nor is the last.
func (s *session) feat(string) {
	lines := []string{s.text(i18n.FeaturesIntro)}
	if s.server.cfg.TLS != nil {
		lines = append(lines, " AUTH TLS", " PBSZ", " PROT")
	}
	lines = append(lines,
		" CLNT",
		" EPRT",
		" EPSV",
		" HOST",
		" LANG "+s.languageTags("*"),
		" MDTM",
		" MFMT",
		" MLST "+s.factList(),
		" REST STREAM",
		" SIZE",
		" TVFS",
		" UTF8",
	)
	s.send(reply{211, append(lines, "End")})
}

// factList names the facts, with "*" behind those that are shown (RFC 3659 7.8).
func (s *session) factList() string {
	var list strings.Builder
	for _, known := range allFacts() {
		list.WriteString(known.name)
		if s.shows(known) {
			list.WriteByte('*')
		}
		list.WriteByte(';')
	}
	return list.String()
}

func (s *session) shows(f fact) bool {
	return slices.ContainsFunc(s.facts, func(shown fact) bool { return shown.name == f.name })
}

// opts is OPTS (RFC 2389 4).
func (s *session) opts(arg string) {
	name, options, hasOptions := strings.Cut(arg, " ")
	switch strings.ToUpper(name) {
	case "UTF8", "UTF-8":
		s.optsUTF8(options)
	case "MLST":
		s.optsMLST(options, hasOptions)
	default:
		s.say(501, i18n.OptionUnknown, "OPTS")
	}
}

// optsUTF8 is OPTS UTF8, which no RFC defines and many clients send.
func (s *session) optsUTF8(options string) {
	switch strings.ToUpper(options) {
	case "", "ON":
		s.utf8 = true
		s.say(200, i18n.UTF8On)
	case "OFF":
		if s.tenant == nil || s.tenant.Encoding.UTF8() {
			s.say(504, i18n.UTF8StaysOn)
			return
		}
		s.utf8 = false
		s.say(200, i18n.UTF8Off, s.tenant.Encoding.String())
	default:
		s.say(501, i18n.OptionUnknown, "OPTS UTF8")
	}
}

// optsMLST chooses the facts of MLST and MLSD; unknown ones are ignored, and
// the reply names what is left (RFC 3659 7.9).
func (s *session) optsMLST(options string, hasOptions bool) {
	asked := strings.Split(strings.ToLower(options), ";")
	if hasOptions && asked[len(asked)-1] != "" { // each name ends with ";"
		s.say(501, i18n.OptionUnknown, "OPTS MLST")
		return
	}
	s.facts = nil
	line := "MLST OPTS"
	for _, f := range allFacts() {
		if !slices.Contains(asked, f.name) {
			continue
		}
		if len(s.facts) == 0 {
			line += " "
		}
		s.facts = append(s.facts, f)
		line += f.name + ";"
	}
	s.send(reply{200, []string{line}})
}
