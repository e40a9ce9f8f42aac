package wire

import (
	"math"
	"strconv"
	"strings"
)

// A ByteRange is the bytes [From, To) of a file.
type ByteRange struct{ From, To int64 }

// endOfFile as To means the end of the file.
const endOfFile = -1

// WholeFile returns the range of a whole file.
func WholeFile() ByteRange { return ByteRange{0, endOfFile} }

// parseRANG parses the argument of RANG: the first and the last byte of a range. "1 0" means the whole file.
func parseRANG(arg string) (ByteRange, bool) {
	first, last, _ := strings.Cut(arg, " ")
	if !IsNumber(first) || !IsNumber(last) {
		return ByteRange{}, false
	}
	from, err := strconv.ParseInt(first, 10, 64)
	to, toErr := strconv.ParseInt(last, 10, 64)
	switch {
	case from == 1 && to == 0:
		return WholeFile(), true
	case err != nil || toErr != nil || from > to || to == math.MaxInt64:
		return ByteRange{}, false
	}
	return ByteRange{from, to + 1}, true
}

// A HashReading is one interpretation of the argument of XCRC.
type HashReading struct {
	Pathname string
	ByteRange
}

// ParseHashArgument returns the possible interpretations of the argument of XCRC.
func ParseHashArgument(arg string) []HashReading {
	whole := WholeFile()
	readings := []HashReading{{arg, whole}}
	if pathname, rest, ok := unquote(arg); ok {
		if r, ok := parseBounds(rest); ok {
			return append([]HashReading{{pathname, r}}, readings...)
		}
		return readings
	}
	for i := len(arg); ; {
		if i = strings.LastIndexByte(arg[:i], ' '); i <= 0 || len(readings) == 3 {
			return readings
		}
		r, ok := parseBounds(arg[i:])
		if !ok {
			return readings
		}
		readings = append(readings, HashReading{arg[:i], r})
	}
}

// Quote quotes a pathname for reply 257 (RFC 959, appendix II).
func Quote(pathname string) string { return `"` + strings.ReplaceAll(pathname, `"`, `""`) + `"` }

// unquote parses a quoted pathname, in which quotes are doubled (RFC 959, appendix II), and returns the rest of
// the argument.
func unquote(arg string) (pathname, rest string, ok bool) {
	if !strings.HasPrefix(arg, `"`) {
		return "", "", false
	}
	for i := 1; i < len(arg); i++ {
		switch {
		case arg[i] != '"':
		case strings.HasPrefix(arg[i+1:], `"`):
			i++
		default:
			pathname, rest = arg[1:i], arg[i+1:]
			ok = pathname != "" && (rest == "" || rest[0] == ' ')
			return strings.ReplaceAll(pathname, `""`, `"`), rest, ok
		}
	}
	return "", "", false
}

// parseBounds parses the start of a range and, optionally, its exclusive end.
func parseBounds(text string) (ByteRange, bool) {
	r := WholeFile()
	fields := strings.Fields(text)
	if len(fields) > 2 {
		return r, false
	}
	for i, field := range fields {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || !IsNumber(field) {
			return r, false
		}
		if i == 0 {
			r.From = n
		} else {
			r.To = n
		}
	}
	return r, r.To == endOfFile || r.From <= r.To
}
