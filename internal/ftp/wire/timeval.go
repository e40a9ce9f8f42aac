package wire

import (
	"strings"
	"time"
)

// Layouts of a time-val (RFC 3659, 2.3), which is in UTC.
const (
	timeVal       = "20060102150405"
	timeValMillis = timeVal + ".000"
)

// maxFraction is the number of digits in a fraction that a time.Time can hold.
const maxFraction = 9

// Years that a time-val can represent.
const (
	minYear = 1000
	maxYear = 9999
)

// AppendTimeVal appends a time in whole seconds, or with exactly three digits of a fraction if it has
// milliseconds. RFC 3659 allows any number of digits, but many clients parse them as a number of milliseconds:
// they reject nine digits or read them as days, and read ".5" as five milliseconds. AppendTimeVal returns false if
// a time-val cannot represent the time, for example the zero time.
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

// ParseTimeVal parses a time-val, and returns false if it is malformed. Second 60 at the end of a month is a leap
// second. It is parsed as the next second, because time.Time has no leap seconds.
func ParseTimeVal(value string) (time.Time, bool) {
	digits, fraction, hasFraction := strings.Cut(value, ".")
	if len(digits) != len(timeVal) || !IsNumber(digits) || hasFraction && !IsNumber(fraction) {
		return time.Time{}, false
	}
	minute, leap := strings.CutSuffix(digits, "60")
	if leap {
		digits = minute + "59"
	}
	t, err := time.Parse(timeVal, digits) // rejects invalid dates
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

// fractionOfSecond returns the duration for the digits after the point.
func fractionOfSecond(digits string) time.Duration {
	d := time.Duration(0)
	for i, unit := 0, time.Second/10; i < min(len(digits), maxFraction); i, unit = i+1, unit/10 {
		d += time.Duration(digits[i]-'0') * unit
	}
	return d
}

// IsToken reports whether a text is a token of RFC 3659, 2.1. All names of facts and most values are tokens.
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
