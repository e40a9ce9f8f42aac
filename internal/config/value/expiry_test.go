package value

import (
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A date is valid until its end in UTC, and a time until that moment.
func TestExpiry(t *testing.T) {
	for _, tc := range []struct{ text, holds, passed string }{
		{"2027-01-31", "2027-01-31T23:59:59Z", "2027-02-01T00:00:00Z"},
		{"2028-02-28", "2028-02-28T23:59:59.999Z", "2028-02-29T00:00:00Z"},
		{"2027-01-31T18:00:00Z", "2027-01-31T17:59:59Z", "2027-01-31T18:00:00Z"},
		{"2027-01-31T18:00:00+01:00", "2027-01-31T16:59:59Z", "2027-01-31T17:00:00Z"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			var e Expiry
			if err := e.UnmarshalText([]byte(tc.text)); err != nil || e.String() != tc.text {
				t.Fatalf("got %s, %v", e, err)
			}
			for at, want := range map[string]bool{tc.holds: false, tc.passed: true} {
				now, err := time.Parse(time.RFC3339, at)
				must.OK(t, err)
				if got := e.Passed(now); got != want {
					t.Errorf("Passed(%s) = %t", at, got)
				}
			}
		})
	}
	for _, text := range []string{"", "never", "2027-1-31", "2027-02-30", "31.01.2027", "2027-01-31 18:00", "1800000000"} {
		if err := new(Expiry).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("accepted %q", text)
		}
	}
	if (Expiry{}).Passed(time.Now()) {
		t.Error("Passed() = true for never")
	}
	at := time.Date(2027, 1, 31, 18, 0, 0, 5, time.FixedZone("", 3600))
	if e := NewExpiry(at); e.String() != "2027-01-31T17:00:00Z" || !e.Passed(at) {
		t.Errorf("String() of %s = %s", at, e)
	}
}
