package control

import (
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/reply"
	"github.com/babelftp/babelftp/internal/wire"
)

// greet sends 220 with the tenant's greeting, or a message where there is none. At the
// beginning of a session (RFC 959 5.4) the tenant is that of the host that the client has
// named to TLS.
func (s *session) greet(id i18n.ID, args ...string) {
	lines := s.greeting()
	if lines == nil {
		lines = []string{s.text(id, args...)}
	}
	s.send(wire.NewReply(220, lines...))
}

// greeting is what the tenant says, by lines.
func (s *session) greeting() []string { return reply.Greeting(s.locale, s.tenant, s.login) }
