package list

import (
	"path"
	"strings"
	"testing"
)

// FuzzGlob compares globs with path.Match.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"*.csv", "a.csv"}, {"*", ""}, {"a*b*c", "aXbYbc"}, {"[a-c]?[^x]*", "bqzz"}, {`\*[\]-a]`, "*]"}, {"[]a]", "]"},
		{"été*", "été.txt"}, {"\xff*", "\xffa"},
		{strings.Repeat("*a", 40), strings.Repeat("a", 70)}, {strings.Repeat("?", 64), strings.Repeat("é", 64)},
		{strings.Repeat("a", 65), strings.Repeat("a", 65)},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		want, err := path.Match(pattern, name)
		if err != nil || strings.Contains(name, "/") || strings.Contains(pattern, "/") ||
			strings.ContainsRune(name+pattern, '\uFFFD') ||
			strings.Contains(pattern, "[") && strings.ToValidUTF8(name, "") != name {
			return // no pattern or name of an entry; or bytes that are not UTF-8 in a class
		}
		g := newGlob(pattern)
		for range 2 { // which keeps nothing of the name before
			if got := g.match(name); got != want {
				t.Errorf("pattern %q, name %q: %t, want %t", pattern, name, got, want)
			}
		}
	})
}

// TestManyStars matches long names with patterns that cost minutes by backtracking.
func TestManyStars(t *testing.T) {
	long := strings.Repeat("a", 1000)
	for _, pattern := range []string{strings.Repeat("*a", 240), "*" + strings.Repeat("a", 400),
		strings.Repeat("*[a-z]", 150)} {
		matches, fails := parsePattern(pattern, "/"+pattern), parsePattern(pattern+"b", "/"+pattern+"b")
		for range 2000 {
			if !matches.match(long) || fails.match(long) {
				t.Fatalf("the pattern %.20q does not match, or matches with a letter that the name lacks", pattern)
			}
		}
	}
}
