package netaddr

import "testing"

func TestPortRange(t *testing.T) {
	for _, tc := range []struct {
		text string
		want PortRange
	}{
		{"30000-30099", PortRange{30000, 30099}},
		{"30000 - 30099", PortRange{30000, 30099}},
		{"30000", PortRange{30000, 30000}},
		{"1-65535", PortRange{1, 65535}},
	} {
		t.Run(tc.text, func(t *testing.T) {
			var got PortRange
			if err := got.UnmarshalText([]byte(tc.text)); err != nil || got != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
	for _, text := range []string{"", "-", "0-10", "10-0", "30000-", "65536", "a-b", "1-2-3"} {
		t.Run("not-"+text, func(t *testing.T) {
			var got PortRange
			if err := got.UnmarshalText([]byte(text)); err == nil {
				t.Errorf("got %s", got)
			}
		})
	}
}
