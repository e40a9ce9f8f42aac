package value

import "testing"

func TestSecret(t *testing.T) {
	for _, tc := range []struct{ name, text, shown string }{
		{"empty", "", ""},
		{"text", "correct horse", "[redacted]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := NewSecret(tc.text)
			if s.Reveal() != tc.text || s.String() != tc.shown || s.Empty() != (tc.text == "") {
				t.Errorf("reveals %q, shows %q, empty %v", s.Reveal(), s, s.Empty())
			}
		})
	}
}
