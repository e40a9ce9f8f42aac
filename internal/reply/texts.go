package reply

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/account"
)

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

// Size is a number of bytes as people read it, rounded, the same in every
// language.
func Size(bytes int64) string {
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

// Usage shows how much is stored of a user's quota. It is "" before the login, where there is no quota, where the user must not
// see it, and while the first number is not known yet.
func Usage(login *account.Login) string {
	if login == nil || login.Quota == nil || login.QuotaHidden {
		return ""
	}
	used, limit, known := login.Quota()
	if !known {
		return ""
	}
	return Size(used) + " / " + Size(limit)
}

// Greeting is what a tenant says to clients that have named its host and, after login, to its users: its own text in the language of the
// locale, by lines. It is nil where there is none.
func Greeting(l *Locale, t *account.Tenant, login *account.Login) []string {
	if t == nil {
		return nil
	}
	texts := t.Greeting
	values := map[string]string{"{Tenant}": t.Name, "{User}": "", "{LastLogin}": "", "{Quota}": Usage(login)}
	if login != nil {
		values["{User}"] = login.User
		if !login.LastLogin.IsZero() {
			values["{LastLogin}"] = Time(login.LastLogin)
		}
		if len(t.Welcome) > 0 {
			texts = t.Welcome
		}
	}
	return l.Lines(texts, values)
}

// Columns writes the names of commands as lines of HELP do.
func Columns(names []string) []string {
	const columns = 8
	var lines []string
	for row := range slices.Chunk(names, columns) {
		var line strings.Builder
		for _, name := range row {
			fmt.Fprintf(&line, " %-4s", name)
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

// Time is a time as people read it, the same in every language.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
