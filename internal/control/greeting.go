package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/reply"
	"github.com/babelftp/babelftp/internal/wire"
)

// greet sends the first reply of a session (RFC 959 5.4): that of the tenant
// whose host the client has named to TLS, if it did.
func (s *session) greet() {
	lines := s.greeting()
	if lines == nil {
		lines = []string{s.text(i18n.ServiceReady)}
	}
	s.send(wire.NewReply(220, lines...))
}

// greeting is what the tenant says to those who have named its host and, after
// login, to its users: its own text in the session's language, by lines. A line
// with a variable that has no value yet is left out.
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
	text := strings.TrimSpace(i18n.SelectText(texts, s.locale.Tag()))
	if text == "" {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line, ok := reply.FillIn(strings.TrimSpace(line), values); ok {
			lines = append(lines, s.locale.Encode(line))
		}
	}
	return lines
}
