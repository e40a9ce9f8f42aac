package wire

import (
	"strings"
	"time"
)

// The layouts of a time-val (RFC 3659 2.3), which is in UTC.
const (
	timeVal       = "20060102150405"
	timeValMillis = timeVal + ".000"
)

// maxFraction is how many digits of a fraction a time.Time can hold.
const maxFraction = 9

// The years that a time-val can express.
const (
	minYear = 1000
	maxYear = 9999
)

// AppendTimeVal appends a time in whole seconds, or with exactly three digits of a fraction if it has milliseconds.
// RFC 3659 allows any number of digits, but many clients read them as a number of milliseconds: nine digits are an
// error or days to them, and ".5" is five milliseconds. AppendTimeVal returns false for a time that a time-val cannot
// express, such as the zero time.
func AppendTimeVal(b []byte, t time.Time) ([]byte, bool) {
	t = t.UTC().Truncate(time.Millisecond)
	if t.Year() < minYear || t.Year() > maxYear {
		return b, false
	}
	layout := timeVal
	if t.Nanosecond() > 0 {
		layout = timeValMillis
	}
	return t.AppendFormat(b, layout), true
}

// ParseTimeVal reads a time-val, and returns false for a malformed one. A second 60 at
// the end of a month is a leap second, and becomes the next second, because time.Time
// has no leap seconds.
func ParseTimeVal(value string) (time.Time, bool) {
	digits, fraction, hasFraction := strings.Cut(value, ".")
	if len(digits) != len(timeVal) || !IsNumber(digits) || hasFraction && !IsNumber(fraction) {
		return time.Time{}, false
	}
	minute, leap := strings.CutSuffix(digits, "60")
	if leap {
		digits = minute + "59"
	}
	t, err := time.Parse(timeVal, digits) // refuses what no calendar has
	if err != nil || t.Year() < minYear {
		return time.Time{}, false
	}
	if leap {
		t = t.Add(time.Second)
		if t.Day() != 1 || t.Hour() != 0 || t.Minute() != 0 || t.Year() > maxYear {
			return time.Time{}, false
		}
	}
	return t.Add(fractionOfSecond(fraction)), true
}

// fractionOfSecond is the time that the digits after the point stand for.
func fractionOfSecond(digits string) time.Duration {
	d := time.Duration(0)
	for i, unit := 0, time.Second/10; i < min(len(digits), maxFraction); i, unit = i+1, unit/10 {
		d += time.Duration(digits[i]-'0') * unit
	}
	return d
}

// IsToken reports whether a text is a token of RFC 3659 2.1, as all names of facts and
// most values are.
func IsToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && !IsNumber(text[i:i+1]) && !strings.Contains(`,.:!@#$%^&()-_+?/\'"`, text[i:i+1]) {
			return false
		}
	}
	return text != ""
}
