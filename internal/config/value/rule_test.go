package value

import (
	"strings"
	"testing"

	"github.com/babelftp/babelftp/driver"
)

func TestRules(t *testing.T) {
	good := map[string]func() string{
		"bucket":         func() string { return BucketProblem("acme-data.2024") },
		"prefix":         func() string { return PrefixProblem("inbox/2024/") },
		"no-prefix":      func() string { return PrefixProblem("") },
		"directory":      func() string { return DirectoryProblem("/a/été", "prefix") },
		"pattern":        func() string { return PatternProblem(`/in/*.[pP]df/\*`) },
		"line-feed":      func() string { return textCharacter('\n') },
		"text-character": func() string { return textCharacter('é') },
		"tag":            func() string { return TagProblem("source", "ftp: été") },
	}
	for name, check := range good {
		if broken := check(); broken != "" {
			t.Errorf("%s: %s", name, broken)
		}
	}
	for name, check := range map[string]func() string{
		"bucket-with-capitals":    func() string { return BucketProblem("Acme") },
		"bucket-that-is-short":    func() string { return BucketProblem("ab") },
		"bucket-that-is-address":  func() string { return BucketProblem("127.0.0.1") },
		"prefix-with-a-slash":     func() string { return PrefixProblem("/inbox") },
		"prefix-of-the-server":    func() string { return PrefixProblem("a/.babelftp/") },
		"prefix-that-is-long":     func() string { return PrefixProblem(strings.Repeat("x", maxPrefix+1)) },
		"directory-relative":      func() string { return DirectoryProblem("a", "prefix") },
		"directory-root":          func() string { return DirectoryProblem("/", "prefix") },
		"directory-not-clean":     func() string { return DirectoryProblem("/a/../b", "prefix") },
		"pattern-open":            func() string { return PatternProblem("/[a") },
		"pattern-backslash":       func() string { return PatternProblem(`/a\`) },
		"control-character":       func() string { return textCharacter('\r') },
		"bidirectional-character": func() string { return textCharacter('\u202e') },
		"tag-of-aws":              func() string { return TagProblem("AWS:x", "") },
		"tag-without-key":         func() string { return TagProblem("", "x") },
		"tag-with-a-comma":        func() string { return TagProblem("a", "b,c") },
	} {
		if check() == "" {
			t.Errorf("accepted %s", name)
		}
	}
}

// The reserved segment must be the one that the driver hides.
func TestReserved(t *testing.T) {
	if Reserved != driver.Reserved {
		t.Errorf("got reserved directory %s, want %s as in the driver", Reserved, driver.Reserved)
	}
}
