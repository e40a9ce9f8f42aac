package rule

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	const hash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs"
	good := map[string]func() string{
		"bucket":         func() string { return Bucket("acme-data.2024") },
		"prefix":         func() string { return Prefix("inbox/2024/") },
		"no-prefix":      func() string { return Prefix("") },
		"directory":      func() string { return Directory("/a/été", "prefix") },
		"pattern":        func() string { return Pattern(`/in/*.[pP]df/\*`) },
		"password-hash":  func() string { return PasswordHash(hash) },
		"line-feed":      func() string { return TextCharacter('\n') },
		"text-character": func() string { return TextCharacter('é') },
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
		"password-in-plain-text":  func() string { return PasswordHash("secret") },
		"hash-of-another-kind":    func() string { return PasswordHash("$2a$10$abc") },
		"hash-that-is-weak":       func() string { return PasswordHash(strings.Replace(hash, "m=19456", "m=1", 1)) },
		"hash-that-is-expensive":  func() string { return PasswordHash(strings.Replace(hash, "t=2", "t=101", 1)) },
		"control-character":       func() string { return TextCharacter('\r') },
		"bidirectional-character": func() string { return TextCharacter('\u202e') },
		"tag-of-aws":              func() string { return Tag("AWS:x", "") },
		"tag-without-key":         func() string { return Tag("", "x") },
		"tag-with-a-comma":        func() string { return Tag("a", "b,c") },
	} {
		if check() == "" {
			t.Errorf("%s is let through", name)
		}
	}
}
