package s3object

import (
	"testing"
	"time"
)

func TestMtime(t *testing.T) {
	for _, test := range []struct {
		label, value string
		time         time.Time
	}{
		{"seconds", "1000000000.000000000", time.Date(2001, 9, 9, 1, 46, 40, 0, time.UTC)},
		{"nanoseconds", "1000000000.123456789", time.Date(2001, 9, 9, 1, 46, 40, 123456789, time.UTC)},
		{"epoch", "0.000000000", time.Unix(0, 0)},
		{"before", "-1.500000000", time.Date(1969, 12, 31, 23, 59, 58, 500_000_000, time.UTC)},
		{"just-before", "-0.000000001", time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC)},
		{"whole-before", "-1000.000000000", time.Unix(-1000, 0)},
		{"last", "253402300799.000000000", time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
		{"first", "-62135596800.000000000", time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(test.label, func(t *testing.T) {
			if got := formatMTime(test.time); got != test.value {
				t.Errorf("%v is written as %s, want %s", test.time, got, test.value)
			}
			if got, ok := parseMTime(test.value); !ok || !got.Equal(test.time) {
				t.Errorf("%s is read as %v, %v; want %v", test.value, got, ok, test.time)
			}
		})
	}
	for value, want := range map[string]time.Time{
		"1":                   time.Unix(1, 0),
		"1.5":                 time.Unix(1, 500_000_000),
		"1.":                  time.Unix(1, 0),
		"1.12345678901234567": time.Unix(1, 123456789), // as strconv.FormatFloat may write it
	} {
		if got, ok := parseMTime(value); !ok || !got.Equal(want) {
			t.Errorf("%s is read as %v, %v; want %v", value, got, ok, want)
		}
	}
	for _, value := range []string{"", "-", ".", ".5", "x", "1.x", "1e9", "--1", "+1", "1.-5", "253402300800",
		"99999999999999999999", "9000000000000000000"} {
		if got, ok := parseMTime(value); ok {
			t.Errorf("%q is read as %v", value, got)
		}
	}
}
