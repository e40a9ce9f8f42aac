package wire

import (
	"testing"
	"time"
)

func TestTimeVal(t *testing.T) {
	for value, want := range map[string]time.Time{
		"20060102030405":            time.Date(2006, 1, 2, 3, 4, 5, 0, time.UTC),
		"20060102030405.5":          time.Date(2006, 1, 2, 3, 4, 5, 500_000_000, time.UTC),
		"20060102030405.014":        time.Date(2006, 1, 2, 3, 4, 5, 14_000_000, time.UTC),
		"20060102030405.000":        time.Date(2006, 1, 2, 3, 4, 5, 0, time.UTC),
		"20060102030405.1234567899": time.Date(2006, 1, 2, 3, 4, 5, 123456789, time.UTC),
		"20240229000000":            time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
		"10000101000000":            time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC),
		"99991231235959":            time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		"20161231235960":            time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC),
		"20120630235960.25":         time.Date(2012, 7, 1, 0, 0, 0, 250_000_000, time.UTC),
		"00000000000000":            {},
		"09991231235959":            {},
		"99991231235960":            {},
		"20060102030460":            {},
		"20161230235960":            {},
		"20161231225960":            {},
		"20060102030461":            {},
		"20060102036000":            {},
		"20060102240000":            {},
		"20060100030405":            {},
		"20060431030405":            {},
		"20230229000000":            {},
		"19000229000000":            {},
		"20061302030405":            {},
		"2006010203040":             {},
		"200601020304055":           {},
		"20060102030405.":           {},
		"20060102030405.x":          {},
		"20060102030405,5":          {},
		"20060102030405.5.5":        {},
		"+2006010203040":            {},
		"2006 102030405":            {},
		"２００６０１０２０３０４０５": {},
		"": {},
	} {
		got, ok := ParseTimeVal(value)
		if ok == want.IsZero() || !got.Equal(want) {
			t.Errorf("ParseTimeVal(%q) = %v, %v; want %v", value, got, ok, want)
		}
	}
}

func TestWriteTimeVal(t *testing.T) {
	for _, test := range []struct {
		time time.Time
		want string // empty if it cannot be written
	}{
		{time.Date(2006, 1, 2, 3, 4, 5, 0, time.UTC), "20060102030405"},
		{time.Date(2006, 1, 2, 3, 4, 5, 14_000_000, time.UTC), "20060102030405.014"},
		{time.Date(2006, 1, 2, 3, 4, 5, 500_000_000, time.UTC), "20060102030405.500"},
		{time.Date(2006, 1, 2, 3, 4, 5, 123_456_789, time.UTC), "20060102030405.123"},
		{time.Date(2006, 1, 2, 3, 4, 5, 999_999_999, time.UTC), "20060102030405.999"},
		{time.Date(2006, 1, 2, 3, 4, 5, 999_999, time.UTC), "20060102030405"},
		{time.Date(2006, 1, 2, 3, 4, 5, 1, time.UTC), "20060102030405"},
		{time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), "99991231235959.999"},
		{time.Date(2006, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)), "20060102020405"},
		{time.Date(999, 12, 31, 23, 59, 59, 0, time.UTC), ""},
		{time.Time{}, ""},
	} {
		got, ok := AppendTimeVal(nil, test.time)
		if string(got) != test.want || ok != (test.want != "") {
			t.Errorf("AppendTimeVal(%v) = %q, %v; want %q", test.time, got, ok, test.want)
		}
	}
}
