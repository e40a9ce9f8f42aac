package conformance_test

import (
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

// Section 5: what looks the same may be another file. The very name that was asked for always wins.
func TestTheExactNameWins(t *testing.T) {
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	s := newSite(t, settings{})
	s.put(t, composed, "composed")
	s.put(t, decomposed, "decomposed")
	s.put(t, "caf%C3%A9", "encoded")
	s.put(t, "cafe", "without accent")
	s.put(t, "CAFÉ", "in capitals")
	c := s.login(t)
	for name, want := range map[string]string{
		composed: "composed", decomposed: "decomposed", "caf%C3%A9": "encoded", "cafe": "without accent", "CAFÉ": "in capitals",
	} {
		if got := c.fetch("RETR " + name); got != want {
			t.Errorf("RETR %+q: %q", name, got)
		}
	}
}
