package list

import (
	"strings"
	"testing"
)

func TestPattern(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"*.csv", "a.csv", true},
		{"*.csv", "a.txt", false},
		{"a*b*c", "aXbYbc", true},
		{"[a-c]?[^x]*", "bqzz", true},
		{`\*[\]-a]`, "*]", true},
		{"\u00e9t*", "e\u0301te\u0301.txt", true},
		{"e\u0301t*", "\u00e9t\u00e9.txt", true},
		{"\xff*", "\xffa", true},
		{"[]a]", "]", false},    // malformed
		{"name", "name", false}, // no pattern
		{"dir*/", "dir1", false},
		{"*" + strings.Repeat("a", maxPattern-1), strings.Repeat("a", maxPattern), true},
		{"*" + strings.Repeat("a", maxPattern), strings.Repeat("a", maxPattern), false}, // too long
	}
	for _, tt := range tests {
		t.Run(tt.pattern+"/"+tt.name, func(t *testing.T) {
			if got := parsePattern(tt.pattern, "/"+strings.TrimSuffix(tt.pattern, "/")).match(tt.name); got != tt.want {
				t.Errorf("match = %t, want %t", got, tt.want)
			}
		})
	}
}
