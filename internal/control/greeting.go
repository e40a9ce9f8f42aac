package control

import (
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
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
			values["{LastLogin}"] = clock(s.login.LastLogin)
		}
		values["{Quota}"] = s.quotaUsage()
		if len(s.tenant.Welcome) > 0 {
			texts = s.tenant.Welcome
		}
	}
	text := strings.TrimSpace(i18n.SelectText(texts, s.lang.Tag()))
	if text == "" {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line, ok := fillIn(strings.TrimSpace(line), values); ok {
			lines = append(lines, s.inCharset(line))
		}
	}
	return lines
}

// fillIn puts the values into a line. It returns false when one is missing.
func fillIn(line string, values map[string]string) (string, bool) {
	var pairs []string
	for variable, value := range values {
		if value == "" && strings.Contains(line, variable) {
			return "", false
		}
		pairs = append(pairs, variable, strings.Map(printable, value))
	}
	return strings.NewReplacer(pairs...).Replace(line), true
}

// sizeText is a number of bytes as people read it, rounded, the same in every
// language.
func sizeText(bytes int64) string {
	const units = "KMGTPE"
	if bytes < 1<<10 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	size, unit := float64(bytes), -1
	for size >= 1<<10 {
		size /= 1 << 10
		unit++
	}
	return strings.TrimSuffix(strconv.FormatFloat(size, 'f', 1, 64), ".0") + " " + units[unit:unit+1] + "iB"
}

// clock is a time as people read it, the same in every language.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
