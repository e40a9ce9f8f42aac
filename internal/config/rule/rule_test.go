package rule

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	good := map[string]func() string{
		"bucket":         func() string { return Bucket("acme-data.2024") },
		"prefix":         func() string { return Prefix("inbox/2024/") },
		"no-prefix":      func() string { return Prefix("") },
		"directory":      func() string { return Directory("/a/été", "prefix") },
		"pattern":        func() string { return Pattern(`/in/*.[pP]df/\*`) },
		"line-feed":      func() string { return textCharacter('\n') },
		"text-character": func() string { return textCharacter('é') },
		"tag":            func() string { return Tag("source", "ftp: été") },
	}
	for name, check := range good {
		if broken := check(); broken != "" {
			t.Errorf("%s: %s", name, broken)
		}
	}
	for name, check := range map[string]func() string{
		"bucket-with-capitals":    func() string { return Bucket("Acme") },
		"bucket-that-is-short":    func() string { return Bucket("ab") },
		"bucket-that-is-address":  func() string { return Bucket("127.0.0.1") },
		"prefix-with-a-slash":     func() string { return Prefix("/inbox") },
		"prefix-of-the-server":    func() string { return Prefix("a/.babelftp/") },
		"prefix-that-is-long":     func() string { return Prefix(strings.Repeat("x", maxPrefix+1)) },
		"directory-relative":      func() string { return Directory("a", "prefix") },
		"directory-root":          func() string { return Directory("/", "prefix") },
		"directory-not-clean":     func() string { return Directory("/a/../b", "prefix") },
		"pattern-open":            func() string { return Pattern("/[a") },
		"pattern-backslash":       func() string { return Pattern(`/a\`) },
		"control-character":       func() string { return textCharacter('\r') },
		"bidirectional-character": func() string { return textCharacter('\u202e') },
		"tag-of-aws":              func() string { return Tag("AWS:x", "") },
		"tag-without-key":         func() string { return Tag("", "x") },
		"tag-with-a-comma":        func() string { return Tag("a", "b,c") },
	} {
		if check() == "" {
			t.Errorf("%s is let through", name)
		}
	}
}
