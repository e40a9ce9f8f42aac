package pathname

import (
	"strings"
	"unicode/utf8"
)

// The raw encoding is for a mirror, which keeps the bytes of names (draft-ietf-ftpext-intl-ftp-00 section 3.1.1). Keys
// must be UTF-8. Therefore the encoding writes each byte that is not part of valid UTF-8 as rawEscape and two digits,
// like rclone. It doubles rawEscape itself, so that different names never share a key.
const (
	rawEscape = '‛' // U+201B
	rawDigits = "0123456789ABCDEF"
)

func escapeRaw(name string) string {
	if utf8.ValidString(name) && !strings.ContainsRune(name, rawEscape) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, size := utf8.DecodeRuneInString(name)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteRune(rawEscape)
			b.WriteByte(rawDigits[name[0]>>4])
			b.WriteByte(rawDigits[name[0]&0xf])
		case r == rawEscape:
			b.WriteRune(rawEscape)
			b.WriteRune(rawEscape)
		default:
			b.WriteString(name[:size])
		}
		name = name[size:]
	}
	return b.String()
}

// unescapeRaw returns the bytes that escapeRaw converts to name, and false if there are no such bytes.
func unescapeRaw(name string) (string, bool) {
	if !strings.ContainsRune(name, rawEscape) {
		return name, true
	}
	var b strings.Builder
	for rest := name; rest != ""; {
		before, after, found := strings.Cut(rest, string(rawEscape))
		b.WriteString(before)
		rest = after
		if !found {
			break
		}
		if escape, ok := strings.CutPrefix(rest, string(rawEscape)); ok {
			b.WriteRune(rawEscape)
			rest = escape
			continue
		}
		if len(rest) < 2 {
			return "", false
		}
		high, low := strings.IndexByte(rawDigits, rest[0]), strings.IndexByte(rawDigits, rest[1])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		rest = rest[2:]
	}
	unescaped := b.String()
	// ‛41 and ‛C3‛A9 look like escapes of A and é, which are never escaped.
	return unescaped, escapeRaw(unescaped) == name
}
