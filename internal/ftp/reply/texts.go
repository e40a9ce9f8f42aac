package reply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/users/account"
)

// fillIn replaces the variables in a line. It returns false if a variable has no value.
func (l *Locale) fillIn(line string, values map[string]string) (string, bool) {
	var pairs []string
	for variable, value := range values {
		if value == "" && strings.Contains(line, variable) {
			return "", false
		}
		pairs = append(pairs, variable, l.isolate(strings.Map(printable, value)))
	}
	return strings.NewReplacer(pairs...).Replace(line), true
}

// partsLimit formats the maximum size of a file that results from its parts, together with the configuration key that
// determines it, such as "4.9 GiB (1000 x part_size 5 MiB)".
func (l *Locale) partsLimit(e contract.PartsError) string {
	parts, partSize, bytes, equal := e.PartsLimit()
	than := ""
	if !equal {
		than = ">= "
	}
	return fmt.Sprintf("%s (%d x part_size %s%s)", l.Size(bytes), parts, than, l.Size(partSize))
}

// Size formats a number of bytes for people, rounded.
func (l *Locale) Size(bytes int64) string { return l.lang.Size(bytes) }

// Usage shows how much of a user's quota is used.
type Usage struct{ Used, Limit string }

// UsageOf returns the usage of a user. It returns false before login, without a quota, if the user must not see
// it, and until the objects have been counted.
func (l *Locale) UsageOf(login *account.Login) (Usage, bool) {
	if login == nil || login.QuotaHidden() {
		return Usage{}, false
	}
	usage := login.Usage()
	if usage == nil || !usage.Known {
		return Usage{}, false
	}
	return Usage{l.Size(usage.Used), l.Size(usage.Limit)}, true
}

// Greeting returns the tenant's own text for clients that have named its host or, after login, for its users, in
// the language of the locale. It returns nil if the tenant has no text.
func Greeting(l *Locale, t *account.Tenant, login *account.Login) []string {
	if t == nil {
		return nil
	}
	choices := []map[language.Tag]string{t.Greeting}
	if login != nil {
		choices = []map[language.Tag]string{t.Welcome, t.Greeting}
	}
	return l.lines(func(l *Locale) map[string]string {
		values := map[string]string{"{Tenant}": t.Name, "{User}": "", "{LastLogin}": "", "{Quota}": ""}
		if usage, known := l.UsageOf(login); known {
			values["{Quota}"] = l.lang.Text("page-of", usage.Used, usage.Limit)
		}
		if login != nil {
			values["{User}"] = login.Name
			if !login.LastLogin.IsZero() {
				values["{LastLogin}"] = l.Time(login.LastLogin)
			}
		}
		return values
	}, choices...)
}

// Columns arranges the names of commands in lines for HELP.
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

// Time formats a time in the time zone of the tenant, in the same form in every language.
func (l *Locale) Time(t time.Time) string {
	return strings.TrimSuffix(t.In(cmp.Or(l.tenant.Zone, time.UTC)).Format("2006-01-02 15:04 UTC-07:00"), "+00:00")
}
