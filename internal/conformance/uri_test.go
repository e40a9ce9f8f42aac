package conformance_test

import (
	"cmp"
	"slices"
	"testing"
)

// Section 2.1: hex-encoding belongs to URIs. What goes over FTP is the name itself, and "%" is a character of it.
func TestPercentIsACharacter(t *testing.T) {
	liveAll(t, newSite(t, settings{}), []pathname{
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
		c.store("é", "the letter")
		c.store("A", "the letter")
		c.store("d", "a file")
		c.want("550 ", "SIZE %C3%A9")
		c.want("550 ", "SIZE %41")
		c.want("550 ", "SIZE x%2F..%2FA")
		c.want("550 ", "SIZE %2FA")
		c.want("550 ", "CWD %2E%2E")
		c.store("%C3%A9", "eight bytes")
		c.store("%41", "three bytes")
		if keys := s.keys(t); !slices.Equal(keys, []string{"%41", "%C3%A9", "A", "d", "é"}) {
			t.Errorf("the bucket holds %q", keys)
		}
		if got := c.fetch("RETR é"); got != "the letter" {
			t.Errorf("RETR é: %q", got)
		}
		if got := c.fetch("RETR %C3%A9"); got != "eight bytes" {
			t.Errorf("RETR %%C3%%A9: %q", got)
		}
	})
}

// One name in the two forms of Unicode.
const (
	composed   = "caf\u00e9"
	decomposed = "cafe\u0301"
)

// Section 2.1: names are normalised to composed characters before they go into a URI; a new name is made so.
func TestNewNamesAreNormalized(t *testing.T) {
	for _, tt := range []struct{ form, made string }{{"", composed}, {"nfc", composed}, {"nfd", decomposed}, {"none", ""}} {
		t.Run(cmp.Or(tt.form, "default"), func(t *testing.T) {
			extra := settings{}
			if tt.form != "" {
				extra.acme = "normalization: " + tt.form
			}
			for _, name := range []string{composed, decomposed} {
				s := newSite(t, extra)
				c := s.login(t)
				c.store(name, "content")
				if keys, want := s.keys(t), cmp.Or(tt.made, name); !slices.Equal(keys, []string{want}) {
					t.Errorf("STOR %+q made %+q, want %+q", name, keys, want)
				}
				c.want("350 ", "RNFR "+name)
				c.want("250 ", "RNTO x"+name)
				c.want("250 ", "DELE x"+name)
				c.want("257 ", "MKD "+name)
				c.want("250 ", "CWD "+name)
				if keys, want := s.keys(t), cmp.Or(tt.made, name)+"/"; !slices.Equal(keys, []string{want}) {
					t.Errorf("MKD %+q made %+q, want %+q", name, keys, want)
				}
			}
		})
	}
}

// Section 3.4: an interpreter takes a name in either form.
func TestNamesAreFoundInEitherForm(t *testing.T) {
	for _, names := range [][2]string{{composed, decomposed}, {decomposed, composed}} {
		there, asked := names[0], names[1]
		s := newSite(t, settings{})
		s.put(t, there, "content")
		s.put(t, "dir "+there+"/"+there, "inside")
		c := s.login(t)
		if got := c.fetch("RETR " + asked); got != "content" {
			t.Errorf("RETR %+q: %q", asked, got)
		}
		if got := c.fetch("RETR dir " + asked + "/" + asked); got != "inside" {
			t.Errorf("RETR %+q: %q", asked, got)
		}
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
		s := newSite(t, settings{acme: "normalization: none"})
		s.put(t, composed, "content")
		c := s.login(t)
		c.want("550 ", "SIZE "+decomposed)
		c.want("213 ", "SIZE "+composed)
	})
}

// Section 3.4: a name in Japanese is taken in the charset that the tenant's clients use, and in UTF-8.
func TestNamesAreFoundInEitherCharset(t *testing.T) {
	for charset, bytes := range map[string]string{"shift_jis": "\x93\xfa\x96\x7b", "euc-jp": "\xc6\xfc\xcb\xdc"} {
		s := newSite(t, settings{acme: "pathname_encoding: " + charset})
		s.put(t, "日本", "content")
		c := s.login(t)
		c.want("213 7", "SIZE "+bytes)
		c.want("213 7", "SIZE 日本")
	}
}

// Section 5: what looks the same may be another file. The very name that was asked for always wins.
func TestTheExactNameWins(t *testing.T) {
	s := newSite(t, settings{})
	twins := map[string]string{
		composed: "composed", decomposed: "decomposed", "caf%C3%A9": "encoded", "cafe": "without accent", "CAFÉ": "in capitals",
		"a\nb": "line feed", "a\u240ab": "picture of one",
	}
	for name, content := range twins {
		s.put(t, name, content)
	}
	c := s.login(t)
	for name, content := range twins {
		if got := c.fetch("RETR " + name); got != content {
			t.Errorf("RETR %+q: %q", name, got)
		}
	}
	for name := range twins { // and nothing else is changed
		c.store(name, "new")
		for other, content := range twins {
			if got := s.object(t, other); other != name && got != content {
				t.Errorf("STOR %+q changed %+q: %q", name, other, got)
			}
		}
		c.want("250 ", "DELE "+name)
		if got := len(s.keys(t)); got != len(twins)-1 {
			t.Errorf("DELE %+q: %d objects are left", name, got)
		}
		s.put(t, name, twins[name])
	}
}

// Section 5: nobody can put a file beside another's that looks the same.
func TestNoTwinIsMade(t *testing.T) {
	for _, names := range [][2]string{{composed, decomposed}, {decomposed, composed}} {
		there, asked := names[0], names[1]
		s := newSite(t, settings{})
		s.put(t, there, "content")
		s.put(t, "dir "+there+"/f", "x")
		c := s.login(t)
		c.store(asked, "replaced")
		c.store("dir "+asked+"/g", "x")
		c.want("550 ", "MKD dir "+asked)
		c.store("other", "x")
		c.want("350 ", "RNFR other")
		c.want("250 ", "RNTO "+asked)
		want := []string{there, "dir " + there + "/f", "dir " + there + "/g"}
		if keys := s.keys(t); !slices.Equal(keys, slices.Sorted(slices.Values(want))) {
			t.Errorf("the bucket holds %+q, want %+q", keys, want)
		}
	}
}
