package s3object

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func TestKey(t *testing.T) {
	for _, test := range []struct {
		label, prefix, name string
		key                 string
		kind                error
	}{
		{"relative", "", "a/b", "a/b", nil},
		{"rooted", "", "/a/b", "a/b", nil},
		{"with-a-slash", "", "a/b/", "a/b", nil},
		{"dots", "", "a/./b/../c", "a/c", nil},
		{"slashes", "", "//a///b", "a/b", nil},
		{"above-the-root", "in/", "/../../a", "in/a", nil},
		{"prefix", "in/", "a", "in/a", nil},
		{"prefix-in-a-segment", "in-", "a", "in-a", nil},
		{"root", "in/", "/", "in/", nil},
		{"root-as-nothing", "in/", "", "in/", nil},
		{"root-without-prefix", "", ".", "", nil},
		{"nothing-escaped", "", "%41+ \\", "%41+ \\", nil},
		{"longest", "", strings.Repeat("k", 1024), strings.Repeat("k", 1024), nil},
		{"too-long", "", strings.Repeat("k", 1025), "", syscall.ENAMETOOLONG},
		{"too-long-with-prefix", "in/", strings.Repeat("k", 1022), "", syscall.ENAMETOOLONG},
		{"nul", "", "a\x00", "", syscall.EILSEQ},
		{"latin-1", "", "\xe9", "", syscall.EILSEQ},
		{"reserved", "in/", "a/../.babelftp", "", syscall.EILSEQ},
		{"reserved-in-the-middle", "", "a/.babelftp/b", "", syscall.EILSEQ},
		{"nearly-reserved", "", ".babelftp2/a.babelftp", ".babelftp2/a.babelftp", nil},
	} {
		t.Run(test.label, func(t *testing.T) {
			key, err := KeySpace(test.prefix).Key(test.name)
			if key != test.key || !errors.Is(err, test.kind) {
				t.Errorf("key %q, %v; want %q, %v", key, err, test.key, test.kind)
			}
		})
	}
}

// The error contains the reason, which administrators see in the log.
func TestKeyNamesReason(t *testing.T) {
	for name, want := range map[string]string{
		"\xe9": "invalid name: not UTF-8", "a\x00": "invalid name: contains NUL",
		"a/.babelftp/b": "invalid name: .babelftp is reserved for the server",
	} {
		if _, err := KeySpace("").Key(name); err == nil || err.Error() != want {
			t.Errorf("%q: got %v; want %s", name, err, want)
		}
	}
}

// TestRepresentable checks which segments of keys appear in listings.
func TestRepresentable(t *testing.T) {
	for segment, want := range map[string]bool{
		"a": true, "...": true, ".babelftp2": true, "": false, ".": false, "..": false, "\xe9": false, "a\x00": false,
		".babelftp": false,
	} {
		if got := Representable(segment); got != want {
			t.Errorf("%q: got %v, want %v", segment, got, want)
		}
	}
}
