package conformance_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/i18n"
)

// Sections 4.1 to 4.3 in each language. LANG answers in it, FEAT marks it, and each reply is well formed. LANG alone
// goes back. A language that the server does not have changes nothing.
func TestEachLanguage(t *testing.T) {
	s := newSite(t, settings{})
	bundle, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, tag := range bundle.Tags() {
		tags = append(tags, i18n.FeatTag(tag))
	}
	if got := languages(s.connect(t)); !slices.Equal(got, tags) {
		t.Errorf("FEAT names %q, want %q", got, tags)
	}
	for _, tag := range bundle.Tags() {
		t.Run(tag.String(), func(t *testing.T) {
			own := i18n.FeatTag(tag)
			c := s.connect(t)
			set := "200 " + bundle.Localizer(tag).Text(i18n.LanguageSet)
			if r := c.must("200", "LANG "+tag.String()); r != set {
				t.Errorf("LANG: %q, want %q", r, set)
			}
			wantLanguage(c, own)
			for _, line := range everydayCommands {
				wantWellFormed(t, tag, line, c.send(line))
			}
			wantIsolated(t, tag, c.must("504", "LANG tlh"), "tlh")
			wantLanguage(c, own)
			c.must("200", "LANG")
			wantLanguage(c, "EN")

			c = s.connect(t)
			c.must("200", "LANG "+own)
			wantIsolated(t, tag, c.must("331", "USER ursula"), "ursula")
			c.must("230", "PASS "+password)
			wantLanguage(c, own)
			c.must("200", "LANG")
			wantLanguage(c, "DE") // that of the user's tenant
		})
	}
}

// Section 4.1 and RFC 959 4.2.
var (
	singleLine = regexp.MustCompile(`^\d{3} \S(.*\S)?$`)
	firstLine  = regexp.MustCompile(`^\d{3}-\S(.*\S)?$`)
)

// wantWellFormed wants lines of text in UTF-8 and NFC without control characters, and one space between the code and
// the text.
func wantWellFormed(t *testing.T, tag language.Tag, command, reply string) {
	t.Helper()
	lines := strings.Split(reply, "\r\n")
	if !singleLine.MatchString(lines[len(lines)-1]) || len(lines) > 1 && !firstLine.MatchString(lines[0]) {
		t.Errorf("%q: %q does not begin and end as a reply does", command, reply)
	}
	for _, line := range lines {
		if !utf8.ValidString(line) || !norm.NFC.IsNormalString(line) {
			t.Errorf("%q: %q is not UTF-8 in NFC", command, line)
		}
		open := 0
		for _, r := range line {
			switch {
			case r == '\u2068' && rightToLeft(tag): // FSI
				open++
			case r == '\u2069' && open > 0: // PDI
				open--
			case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control),
				r == unicode.ReplacementChar:
				t.Errorf("%q: %q has %U", command, line, r)
			}
		}
		if open > 0 {
			t.Errorf("%q: an isolate of %q has no end", command, line)
		}
	}
}

// wantIsolated wants an argument between FSI and PDI in a language from right to left, and in no other (Unicode
// Standard Annex 9).
func wantIsolated(t *testing.T, tag language.Tag, reply, argument string) {
	t.Helper()
	if !strings.Contains(reply, argument) || strings.Contains(reply, "\u2068"+argument+"\u2069") != rightToLeft(tag) {
		t.Errorf("%q is isolated, or not, in %q", argument, reply)
	}
}

func rightToLeft(tag language.Tag) bool {
	script, _ := tag.Script()
	return slices.Contains([]string{"Arab", "Hebr"}, script.String())
}
