package netaddr

import (
	"strings"
	"testing"
)

// TestNormalizeHost checks the canonical forms, and that names that are too long are left alone, because normalizing 60
// kB would take seconds.
func TestNormalizeHost(t *testing.T) {
	label := strings.Repeat("a", 49)
	longest := strings.Repeat(label+".", 5) + "abc" // 253 bytes
	for name, tt := range map[string]struct{ given, want string }{
		"letters":       {"FTP.Acme.Example.", "ftp.acme.example"},
		"u-labels":      {"münchen.example", "xn--mnchen-3ya.example"},
		"address":       {"2001:DB8:0::1", "2001:db8::1"},
		"longest":       {strings.ToUpper(longest), longest},
		"longest-dot":   {strings.ToUpper(longest) + ".", longest},
		"too-long":      {strings.ToUpper(longest) + "D", strings.ToUpper(longest) + "D"},
		"much-too-long": {strings.Repeat("Ä.", 20000), strings.Repeat("Ä.", 20000)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NormalizeHost(tt.given); got != tt.want {
				t.Errorf("got %.300q, want %.300q", got, tt.want)
			}
		})
	}
}
