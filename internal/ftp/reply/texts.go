package reply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/number"

	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/users/account"
)

// fillIn puts the values into a line. It returns false when one is missing.
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

// units returns the names of units of bytes, each 1,024 times the one before. They are those of file managers: GLib,
// of GNOME's, writes these languages so, and the others as IEC 80000-13 has them.
func units(tag language.Tag) []string {
	names := map[string]string{
		"":   "B KiB MiB GiB TiB PiB EiB",
		"fr": "o Kio Mio Gio Tio Pio Eio",
		"ru": "Б КиБ МиБ ГиБ ТиБ ПиБ ЭиБ",
		"uk": "Б КіБ МіБ ГіБ ТіБ ПіБ ЕіБ",
	}
	base, _ := tag.Base()
	return strings.Fields(cmp.Or(names[base.String()], names[""]))
}

// PartsLimit writes how large a file may be because of its parts, and names the key of the configuration that decides
// it, such as "4.9 GiB (1000 x part_size 5 MiB)".
func (l *Locale) PartsLimit(e contract.PartsError) string {
	parts, partSize, bytes, equal := e.PartsLimit()
	than := ""
	if !equal {
		than = ">= "
	}
	return fmt.Sprintf("%s (%d x part_size %s%s)", l.Size(bytes), parts, than, l.Size(partSize))
}

// Size is a number of bytes as people read it, rounded. Digits are those of ASCII in every language.
func (l *Locale) Size(bytes int64) string {
	size, names := float64(bytes), units(l.Tag())
	for size >= 1<<10 {
		size /= 1 << 10
		names = names[1:]
	}
	tag, err := l.Tag().SetTypeForKey("nu", "latn")
	if err != nil {
		tag = l.Tag()
	}
	return message.NewPrinter(tag).Sprint(number.Decimal(size, number.MaxFractionDigits(1), number.NoSeparator())) +
		" " + names[0]
}

// Usage shows how much of a user's quota is used.
type Usage struct{ Used, Limit string }

// UsageOf returns the usage of a user. It returns false before the login, without a quota, if the user must not see it,
// and until the objects have been counted.
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

// Greeting is what a tenant says to clients that have named its host and, after login, to its users: its own text in
// the language of the locale, by lines. It is nil where there is none.
func Greeting(l *Locale, t *account.Tenant, login *account.Login) []string {
	if t == nil {
		return nil
	}
	texts := t.Greeting
	values := map[string]string{"{Tenant}": t.Name, "{User}": "", "{LastLogin}": "", "{Quota}": ""}
	if usage, known := l.UsageOf(login); known {
		values["{Quota}"] = usage.Used + " / " + usage.Limit
	}
	if login != nil {
		values["{User}"] = login.Name
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
