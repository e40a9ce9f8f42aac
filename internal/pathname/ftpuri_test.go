package pathname

import (
	"io/fs"
	"net/netip"
	"testing"
)

func TestURI(t *testing.T) {
	const decomposed, composed = "/re\u0301sume\u0301", "/r\u00e9sum\u00e9"
	for _, tt := range []struct {
		name      string
		base      URIBase
		pathname  string
		directory bool
		existing  string // the only pathname that exists
		raw       bool
		want      string
	}{
		{name: "file", pathname: "/a b", want: "ftp://demo@127.0.0.1/a%20b"},
		{name: "directory", pathname: "/a", directory: true, want: "ftp://demo@127.0.0.1/a/"},
		{name: "host", base: URIBase{Host: "ftp.example.com"}, pathname: "/a", want: "ftp://demo@ftp.example.com/a"},
		{name: "tls-on-another-port", base: URIBase{TLS: true}, pathname: "/a", want: "ftps://demo@127.0.0.1:21/a"},
		{name: "below-home", base: URIBase{Home: "/h"}, pathname: "/h/a", want: "ftp://demo@127.0.0.1/a"},
		{name: "beyond-home", base: URIBase{Home: "/h"}, pathname: "/a", want: "ftp://demo@127.0.0.1/%2Fa"},
		{name: "normal-form", pathname: decomposed, existing: decomposed,
			want: "ftp://demo@127.0.0.1/r%C3%A9sum%C3%A9"},
		{name: "normal-form-of-another-file", pathname: decomposed, existing: composed,
			want: "ftp://demo@127.0.0.1/re%CC%81sume%CC%81"},
		{name: "raw", pathname: "/\u201bE9", raw: true, want: "ftp://demo@127.0.0.1/%E9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			has := func(name string) error {
				if name != tt.existing {
					return fs.ErrNotExist
				}
				return nil
			}
			base := tt.base
			base.User, base.Addr = "demo", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), ftpPort)
			rules := Rules{}
			if tt.raw {
				rules.Encoding, _ = ParseEncoding("raw")
			}
			base.EncodeName = InNormalForm(rules, tt.pathname, has)
			if got := base.URI(tt.pathname, tt.directory); got != tt.want {
				t.Errorf("got URI %s, want %s", got, tt.want)
			}
		})
	}
}

// A name in the form of a listing is converted back to the name. A text that is not in the form of a listing stays
// unchanged.
func TestLineBreaks(t *testing.T) {
	for name, shown := range map[string]string{
		"a\nb": "a\u240ab", "\u240a\r\u201b": "\u201b\u240a\u240d\u201b\u201b", "a\u240ab": "a\u240ab",
	} {
		if got := EscapeLineBreaks(name); got != shown {
			t.Errorf("%+q is shown as %+q, want %+q", name, got, shown)
		}
	}
	for shown, name := range map[string]string{
		"a\u240ab": "a\nb", "\u201b\u240a\u240d\u201b\u201b": "\u240a\r\u201b", "\u201b\u240a": "\u201b\u240a",
		"\u240a\u201b": "\u240a\u201b",
	} {
		if got := unescapeLineBreaks(shown); got != name {
			t.Errorf("%+q is the name %+q, want %+q", shown, got, name)
		}
	}
}
