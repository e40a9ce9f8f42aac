package value

import (
	"fmt"
	"time"
)

// An Expiry is the end of a day or a time at which something expires. The zero value never expires.
type Expiry struct {
	end  time.Time // exclusive
	text string
}

// NewExpiry returns an expiry at end, truncated to seconds.
func NewExpiry(end time.Time) Expiry {
	end = end.UTC().Truncate(time.Second)
	return Expiry{end, end.Format(time.RFC3339)}
}

// UnmarshalText parses a date, which is the last valid day in UTC, or a time in RFC 3339 format: 2027-01-31 or
// 2027-01-31T18:00:00+01:00.
func (e *Expiry) UnmarshalText(text []byte) error {
	day, err := time.Parse(time.DateOnly, string(text))
	if err == nil {
		*e = Expiry{day.AddDate(0, 0, 1), string(text)}
		return nil
	}
	end, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return fmt.Errorf("%q is not a date or time: write the last day like 2027-01-31, or a time like "+
			"2027-01-31T18:00:00Z", text)
	}
	*e = Expiry{end.UTC(), string(text)}
	return nil
}

// Passed reports whether the expiry has passed.
func (e Expiry) Passed(now time.Time) bool { return !e.end.IsZero() && !now.Before(e.end) }

// String returns the text that was parsed, or an empty string for the zero value.
func (e Expiry) String() string { return e.text }
