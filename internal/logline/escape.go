// Package logline escapes and writes the lines of logs. A text that a client has sent has no effect on the terminal that shows it
// ([Escape]). A slow disk stops no session, and a file may be moved away ([Writer], [File]).
package logline

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
)

// Escape is a ReplaceAttr of [slog.HandlerOptions]. It escapes the characters of an attribute that a terminal would obey and not show, such
// as U+202E, which turns the direction of text around. The handlers of slog escape those of ASCII themselves. A time that the configuration sets is
// written as the configuration has it, such as 25s, because the JSON handler writes nanoseconds.
func Escape(_ []string, a slog.Attr) slog.Attr {
	obeyed := func(r rune) bool { return r > unicode.MaxASCII && !unicode.IsPrint(r) }
	var text string
	switch v := a.Value.Any().(type) {
	case time.Duration:
		return slog.String(a.Key, v.String())
	case string:
		text = v
	case error:
		text = v.Error()
	}
	if !strings.ContainsFunc(text, obeyed) {
		return a
	}
	var escaped strings.Builder
	for _, r := range text {
		if obeyed(r) {
			fmt.Fprintf(&escaped, `\u{%X}`, r)
			continue
		}
		escaped.WriteRune(r)
	}
	return slog.String(a.Key, escaped.String())
}
