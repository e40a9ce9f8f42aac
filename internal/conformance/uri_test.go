package conformance_test

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Section 2.1: percent-encoding belongs to URIs. FTP transfers the name itself, in which "%" is an ordinary
// character.
func TestPercentIsACharacter(t *testing.T) {
	storeAndDeleteAll(t, newSite(t, settings{}), []pathname{
		{"letter", "%41"},
		{"behind", "100%"},
		{"alone", "%"},
		{"two", "%%"},
		{"slash", "a%2Fb"},
		{"dots", "%2E%2E"},
		{"nul", "%00"},
		{"crlf", "%0D%0A"},
		{"utf-8", "%C3%A9"},
		{"utf-8-in-small-letters", "%c3%a9"},
		{"latin-1", "%E9"},
		{"javascript", "%u00e9"},
		{"plus", "a+b"},
		{"query", "a&b=c?d#e"},
		{"scheme", "ftp:"},
	})
	t.Run("is-not-decoded", func(t *testing.T) {
		s := newSite(t, settings{})
		c := s.login(t)
		c.Store("é", "the letter")
		c.Store("A", "the letter")
		c.Store("d", "a file")
		c.want("550 ", "SIZE %C3%A9")
		c.want("550 ", "SIZE %41")
		c.want("550 ", "SIZE x%2F..%2FA")
		c.want("550 ", "SIZE %2FA")
		c.want("550 ", "CWD %2E%2E")
		c.Store("%C3%A9", "eight bytes")
		c.Store("%41", "three bytes")
		if keys := s.keys(t); !slices.Equal(keys, []string{"%41", "%C3%A9", "A", "d", "é"}) {
			t.Errorf("unexpected keys %q", keys)
		}
		c.Want("the letter", "RETR é")
		c.Want("eight bytes", "RETR %C3%A9")
	})
}

// One name in both Unicode normalization forms.
const (
	composed   = "caf\u00e9"
	decomposed = "cafe\u0301"
)

// Section 2.1: names are normalized to composed characters before they are used in a URI, so new names are created
// in this form.
func TestNewNamesAreNormalized(t *testing.T) {
	for _, tt := range []struct{ form, made string }{{"", composed}, {"nfc", composed}, {"nfd", decomposed},
		{"none", ""}} {
		t.Run(cmp.Or(tt.form, "default"), func(t *testing.T) {
			extra := settings{}
			if tt.form != "" {
				extra.acme = "compatibility: {normalization: " + tt.form + "}"
			}
			s := newSite(t, extra)
			for _, name := range []string{composed, decomposed} {
				c := s.login(t)
				c.Store(name, "content")
				if keys, want := s.keys(t), cmp.Or(tt.made, name); !slices.Equal(keys, []string{want}) {
					t.Errorf("STOR %+q: got keys %+q, want %+q", name, keys, want)
				}
				c.want("350 ", "RNFR "+name)
				c.want("250 ", "RNTO x"+name)
				c.want("250 ", "DELE x"+name)
				c.want("257 ", "MKD "+name)
				c.want("250 ", "CWD "+name)
				if keys, want := s.keys(t), cmp.Or(tt.made, name)+"/"; !slices.Equal(keys, []string{want}) {
					t.Errorf("MKD %+q: got keys %+q, want %+q", name, keys, want)
				}
				c.must("250 ", "CWD /")
				c.must("250 ", "RMD "+name)
			}
		})
	}
}

// Section 3.4: names are found in either form.
func TestNamesAreFoundInEitherForm(t *testing.T) {
	for _, names := range [][2]string{{composed, decomposed}, {decomposed, composed}} {
		there, asked := names[0], names[1]
		s := newSite(t, settings{})
		s.put(t, there, "content")
		s.put(t, "dir "+there+"/"+there, "inside")
		c := s.login(t)
		c.Want("content", "RETR "+asked)
		c.Want("inside", "RETR dir "+asked+"/"+asked)
		for _, line := range []string{"SIZE ", "MDTM ", "MFMT 20200102030405 "} {
			c.want("213 ", line+asked)
		}
		c.want("250-", "MLST "+asked)
		c.want("213-", "STAT "+asked)
		c.want("212-", "STAT dir "+asked)
		if got := c.names("MLSD dir " + asked); !slices.Equal(got, []string{there}) {
			t.Errorf("MLSD: %+q", got)
		}
		c.want("250 ", "CWD dir "+asked)
		c.want("250 ", "DELE "+asked)
		c.want("250 ", "CWD /")
		c.want("350 ", "RNFR "+asked)
		c.want("250 ", "RNTO plain")
		if got := s.object(t, "plain"); got != "content" {
			t.Errorf("after RNTO: %q", got)
		}
	}
	t.Run("not-without-normalization", func(t *testing.T) {
		s := newSite(t, settings{acme: "compatibility: {normalization: none}"})
		s.put(t, composed, "content")
		c := s.login(t)
		c.want("550 ", "SIZE "+decomposed)
		c.want("213 ", "SIZE "+composed)
	})
}

// addresses returns the lines between the first and the last of the reply to SITE URL.
func (c *client) addresses(line string) []string {
	c.t.Helper()
	r := c.want("200-", line)
	lines := strings.Split(r, "\r\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[3], "200 ") {
		c.t.Fatalf("%s: %q", line, r)
	}
	return []string{strings.TrimPrefix(lines[1], " "), strings.TrimPrefix(lines[2], " ")}
}

// follow accesses an ftp URI as specified in RFC 1738 3.2.2: a CWD for each segment except the last, which is a
// file.
func (s *site) follow(t *testing.T, uri string) string {
	t.Helper()
	u, err := url.Parse(uri)
	must.OK(t, err)
	if u.Scheme != "ftp" || u.Host != s.address {
		t.Errorf("the URI is for %s://%s, want ftp://%s", u.Scheme, u.Host, s.address)
	}
	c := s.connect(t)
	c.Login(u.User.Username(), password)
	segments := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, segment := range segments {
		name, err := url.PathUnescape(segment)
		must.OK(t, err)
		if i == len(segments)-1 {
			return c.Transfer("RETR " + nvt(name))
		}
		c.must("250", "CWD "+nvt(name))
	}
	return ""
}

// uriNames lists names that are difficult in URIs.
var uriNames = []pathname{
	{"ascii", "plain.txt"},
	{"latin", "Été à Zürich.txt"},
	{"japanese", "日本語.txt"},
	{"emoji", "🦊.txt"},
	{"spaces", " a  b "},
	{"percent", "100%41.txt"},
	{"reserved", "a&b=c?d#e;type=i@x:y+z,$"},
	{"brackets", "[a]{b}<c>|\\^`"},
	{"quotes", `quo"te'`},
	{"line-ends", "cr\r\nlf"},
	{"controls", "\t\x7f\u0085"},
	{"bidi", "a\u202eb\u200f"},
	{"invisible", "\ufeffa\u200bb\u00ad"},
	{"look-alike-spaces", "a\u00a0b\u3000c"},
	{"combining-first", "\u0301a"},
}

// Section 2.1 and 3.2: a generated URI is ASCII, encodes the UTF-8 bytes, and leads to the file.
func TestURIs(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	allowed := regexp.MustCompile(`^ftp://[A-Za-z0-9.:@-]+/(?:[A-Za-z0-9._~/-]|%[0-9A-F]{2})*$`)
	for _, tt := range uriNames {
		t.Run(tt.label, func(t *testing.T) {
			for _, name := range []string{tt.bytes, "dir " + tt.bytes + "/" + tt.bytes} {
				s.put(t, name, "content of "+name)
				uri := c.addresses("SITE URL " + nvt(name))[0]
				if !allowed.MatchString(uri) {
					t.Errorf("%q: unexpected URI %s", name, uri)
				}
				if got := s.follow(t, uri); got != "content of "+name {
					t.Errorf("%s leads from %q to %q", uri, name, got)
				}
			}
		})
	}
	if got := c.addresses("SITE URL 日本語.txt")[1]; got != "s3://"+s.bucket+"/日本語.txt" &&
		got != "s3://"+s.bucket+"/%E6%97%A5%E6%9C%AC%E8%AA%9E.txt" {
		t.Errorf("unexpected S3 URI %s", got)
	}
	c.want("550 ", "SITE URL nothing")
	c.want("501 ", "SITE URL")
	c.want("501 ", "SITE URL \xc0\xae")
	s.connect(t).want("530 ", "SITE URL f")
}

// Section 2.1 and 3.2: URIs are in UTF-8, whatever charset the tenant's clients use.
func TestURIsHaveNoCharset(t *testing.T) {
	s := newSite(t, settings{acme: "compatibility: {charset: shift_jis}"})
	s.put(t, "日本/語.txt", "x")
	c := s.login(t)
	for _, name := range []string{"\x93\xfa\x96\x7b/\x8c\xea.txt", "日本/語.txt"} {
		if uri := c.addresses("SITE URL " + name)[0]; !strings.HasSuffix(uri, "/%E6%97%A5%E6%9C%AC/%E8%AA%9E.txt") {
			t.Errorf("SITE URL %q: %s", name, uri)
		}
		if uri := c.addresses("SITE URL --8bit " + name)[0]; !strings.HasSuffix(uri, "/日本/語.txt") {
			t.Errorf("SITE URL --8bit %q: %q", name, uri)
		}
	}
}

// Section 2.2: an 8URI contains the characters themselves, except for ambiguous ones.
func TestEightBitURIs(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	for _, tt := range uriNames {
		t.Run(tt.label, func(t *testing.T) {
			s.put(t, tt.bytes, "content of "+tt.bytes)
			plain := c.addresses("SITE URL " + nvt(tt.bytes))[0]
			uri := c.addresses("SITE URL --8bit " + nvt(tt.bytes))[0]
			if strings.ContainsAny(uri, " \t\r\n\"<>{}|\\^`\x7f\u0085\u202e\u200f\ufeff\u200b\u00ad\u00a0\u3000") ||
				!utf8.ValidString(uri) {
				t.Errorf("%q: unexpected 8URI %q", tt.bytes, uri)
			}
			var encoded strings.Builder // non-ASCII characters may be encoded without changing the meaning
			for i := range len(uri) {
				if uri[i] < utf8.RuneSelf {
					encoded.WriteByte(uri[i])
				} else {
					fmt.Fprintf(&encoded, "%%%02X", uri[i])
				}
			}
			if encoded.String() != plain {
				t.Errorf("%q: got 8URI %q, encoded %s, want URI %s", tt.bytes, uri, encoded.String(), plain)
			}
			if got := s.follow(t, encoded.String()); got != "content of "+tt.bytes {
				t.Errorf("%s leads from %q to %q", uri, tt.bytes, got)
			}
		})
	}
	for name, want := range map[string]string{"日本語.txt": "/日本語.txt", "Été à Zürich.txt": "/Été%20à%20Zürich.txt",
		"\u0301a": "/%CC%81a"} {
		if uri := c.addresses("SITE URL --8bit " + name)[0]; !strings.HasSuffix(uri, want) {
			t.Errorf("%q: unexpected 8URI %s", name, uri)
		}
	}
}

// Section 3.2: an HTTP link signed for S3 also leads to the file, whatever its name.
func TestLinksLeadToTheFile(t *testing.T) {
	s := newSite(t, settings{storage: "minio", acme: "presign: 1h"})
	c := s.login(t)
	for _, tt := range uriNames {
		t.Run(tt.label, func(t *testing.T) {
			s.put(t, tt.bytes, "content of "+tt.bytes)
			r := c.must("200-", "SITE PRESIGN "+nvt(tt.bytes))
			link := strings.TrimPrefix(strings.Split(r, "\r\n")[1], " ")
			response, err := http.Get(link)
			must.OK(t, err)
			defer response.Body.Close()
			if content, err := io.ReadAll(response.Body); err != nil || string(content) != "content of "+tt.bytes {
				t.Errorf("%s: %s, %q, %v", link, response.Status, content, err)
			}
		})
	}
}

// Section 5: names that look the same may be different files. An exact match always wins.
func TestTheExactNameWins(t *testing.T) {
	s := newSite(t, settings{})
	twins := map[string]string{
		composed: "composed", decomposed: "decomposed", "caf%C3%A9": "encoded", "cafe": "without accent",
		"CAFÉ": "in capitals",
		"a\nb": "line feed", "a\u240ab": "picture of one",
	}
	for name, content := range twins {
		s.put(t, name, content)
	}
	c := s.login(t)
	for name, content := range twins {
		c.Want(content, "RETR "+name)
	}
	for name := range twins { // no other file is changed
		c.Store(name, "new")
		for other, content := range twins {
			if got := s.object(t, other); other != name && got != content {
				t.Errorf("STOR %+q changed %+q: %q", name, other, got)
			}
		}
		c.want("250 ", "DELE "+name)
		if got := len(s.keys(t)); got != len(twins)-1 {
			t.Errorf("DELE %+q: got %d remaining objects", name, got)
		}
		s.put(t, name, twins[name])
	}
}
