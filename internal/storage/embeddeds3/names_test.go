package embeddeds3

import (
	"strings"
	"testing"
)

func TestCheckKey(t *testing.T) {
	tests := []struct{ name, key, want string }{
		{name: "bucket", key: ""},
		{name: "ordinary", key: "a/b.txt"},
		{name: "marker", key: "a/b/"},
		{name: "dots-in-segments", key: ".a/..b/c./..."},
		{name: "longest-segment", key: "a/" + strings.Repeat("x", maxSegment)},
		{name: "longest-key", key: strings.Repeat("1234567/", maxKey/8)},
		{name: "too-long-segment", key: "a/" + strings.Repeat("x", maxSegment+1) + "/b", want: "KeyTooLongError"},
		{name: "too-long-key", key: strings.Repeat("1234567/", maxKey/8) + "x", want: "KeyTooLongError"},
		{name: "leading-slash", key: "/a", want: "InvalidURI"},
		{name: "empty-segment", key: "a//b", want: "InvalidURI"},
		{name: "empty-last-segment", key: "a//", want: "InvalidURI"},
		{name: "only-a-slash", key: "/", want: "InvalidURI"},
		{name: "dot", key: "a/./b", want: "InvalidURI"},
		{name: "dot-dot", key: "a/..", want: "InvalidURI"},
		{name: "temporary-folder", key: "a/.sgwtmp/b", want: "InvalidURI"},
		{name: "nul", key: "a\x00b", want: "InvalidURI"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := checkKey(test.key); err != nil {
				got = err.BaseError().Code
			}
			if got != test.want {
				t.Errorf("checkKey(%.40q) = %q, want %q", test.key, got, test.want)
			}
		})
	}
}
