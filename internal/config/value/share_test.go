package value

import (
	"strings"
	"testing"
)

func TestShare(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "1": "1", "0.1": "0.1", "1.0": "1", ".25": "0.25", "1e-3": "0.001"} {
		var s Share
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != want {
			t.Errorf("%s: %s %v, want %s", text, s, err, want)
		}
	}
	for _, text := range []string{"", "-0.1", "1.1", "10%", "half", "nan", "inf"} {
		var s Share
		if err := s.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "from 0 to 1") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
