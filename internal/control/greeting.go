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

// greeting is what the tenant says to those who have named its host and, after
// login, to its users: its own text in the session's language, by lines.
func (s *session) greeting() []string {
	if s.tenant == nil {
		return nil
	}
	texts := s.tenant.Greeting
	values := map[string]string{"{Tenant}": s.tenant.Name, "{User}": "", "{LastLogin}": "", "{Quota}": ""}
	if s.login != nil {
		values["{User}"] = s.login.User
		if !s.login.LastLogin.IsZero() {
			values["{LastLogin}"] = reply.Time(s.login.LastLogin)
		}
		values["{Quota}"] = s.quotaUsage()
		if len(s.tenant.Welcome) > 0 {
			texts = s.tenant.Welcome
		}
	}
	return s.locale.Lines(texts, values)
}
