package control

import (
	"path"
	"strings"

	"github.com/babelftp/babelftp/internal/ftpuri"
)

// ftpURI is the URI of a pathname for the user who is logged in.
func (s *session) ftpURI(name string, directory bool) string {
	base := ftpuri.Base{
		TLS: s.implicit, Host: s.hostname, Addr: s.conn.LocalAddr(), User: s.name, Home: s.login.Home,
		EncodeName: s.uriForm(name),
	}
	return base.URI(name, directory)
}

// uriForm is how the names of a pathname are written in its URI: in the form that
// the tenant's names have, NFC unless told otherwise (draft-masinter-url-i18n
// 2.1), but not where that is the name of something else (section 5 there).
func (s *session) uriForm(name string) func(dir, name string) string {
	rules := s.nameRules()
	form := func(dir, name string) string {
		if encoding := rules.EncodingOf(dir); encoding.Raw() {
			name, _ = encoding.Encode(name) // the bytes of a mirror
			return name
		}
		return rules.NormalForm(dir, name)
	}
	formed, dir := "/", "/"
	for segment := range strings.SplitSeq(name[len("/"):], "/") {
		formed = path.Join(formed, rules.NormalForm(dir, segment))
		dir = path.Join(dir, segment)
	}
	if formed != name {
		if _, err := s.op.Storage.Stat(formed); err == nil {
			return func(_, name string) string { return name }
		}
	}
	return form
}
