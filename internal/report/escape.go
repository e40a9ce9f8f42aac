package report

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Escape is a ReplaceAttr function for [slog.HandlerOptions]. It escapes characters that would change the terminal
// instead of being displayed, such as U+202E, which reverses the direction of text. The handlers of slog already
// escape those in ASCII. Escape also formats durations as in the configuration, such as 25s, because the JSON handler
// would write nanoseconds.
func Escape(_ []string, a slog.Attr) slog.Attr {
	var text string
	switch v := a.Value.Any().(type) {
	case time.Duration:
		return slog.String(a.Key, v.String())
	case []string:
		texts := make([]string, len(v))
		for i, text := range v {
			texts[i] = escape(text)
		}
		return slog.Any(a.Key, texts)
	case map[string]any:
		return slog.Any(a.Key, escapeAll(v))
	case string:
		text = v
	case error:
		text = v.Error()
	}
	escaped := escape(text)
	if escaped == text {
		return a
	}
	return slog.String(a.Key, escaped)
}

// escapeAll escapes the strings in a JSON value.
func escapeAll(v any) any {
	switch v := v.(type) {
	case string:
		return escape(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = escapeAll(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, value := range v {
			object[escape(key)] = escapeAll(value)
		}
		return object
	}
	return v
}

// maxText limits the bytes of a text that a client chooses, such as an invalid argument. Without it, logs could grow
// faster than the network lets files grow.
const maxText = 256

// Clip shortens a text to 256 bytes and appends the full length. Do not clip the names of stored files.
func Clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > maxText-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s... (%d bytes)", text[:end], len(text))
}

func escape(text string) string {
	return EscapeUnprintable(text, func(b *strings.Builder, r rune, bytes string) {
		if r <= unicode.MaxASCII || r == utf8.RuneError {
			b.WriteString(bytes)
			return
		}
		fmt.Fprintf(b, `\u{%X}`, r)
	})
}

// EscapeUnprintable calls escape for each character that would change the terminal instead of being displayed. For
// bytes that are not valid UTF-8, the character is [utf8.RuneError].
func EscapeUnprintable(text string, escape func(b *strings.Builder, r rune, bytes string)) string {
	printable := func(r rune, size int) bool { return unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) }
	var b strings.Builder
	for i, done := 0, 0; ; {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case size == 0 && done == 0:
			return text
		case size == 0:
			return b.String() + text[done:]
		case !printable(r, size):
			b.WriteString(text[done:i])
			escape(&b, r, text[i:i+size])
			done = i + size
		}
		i += size
	}
}
