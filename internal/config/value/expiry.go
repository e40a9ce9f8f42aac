package value

import (
	"fmt"
	"time"
)

// An Expiry is until when something holds: the end of a day, or a time. The zero value is never.
type Expiry struct {
	end  time.Time // the first moment after it
	text string
}

// NewExpiry is the expiry when end comes, in seconds of UTC.
func NewExpiry(end time.Time) Expiry {
	end = end.UTC().Truncate(time.Second)
	return Expiry{end, end.Format(time.RFC3339)}
}

// UnmarshalText reads a date, which is the last day in UTC, or a time of RFC 3339: 2027-01-31,
// 2027-01-31T18:00:00+01:00.
func (e *Expiry) UnmarshalText(text []byte) error {
	day, err := time.Parse(time.DateOnly, string(text))
	if err == nil {
		*e = Expiry{day.AddDate(0, 0, 1), string(text)}
		return nil
	}
	end, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return fmt.Errorf("%q is no date or time: write the last day like 2027-01-31, or a time like "+
			"2027-01-31T18:00:00Z", text)
	}
	*e = Expiry{end.UTC(), string(text)}
	return nil
}

// Passed tells whether it is over.
func (e Expiry) Passed(now time.Time) bool { return !e.end.IsZero() && !now.Before(e.end) }

// String is the expiry as it was written, empty for never.
func (e Expiry) String() string { return e.text }
