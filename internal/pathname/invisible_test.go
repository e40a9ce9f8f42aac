package pathname_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/pathname"
)

// TestInvisibleCharacters: a new name has no invisible character, except where a script or an emoji needs it.
func TestInvisibleCharacters(t *testing.T) {
	for label, refused := range map[string]string{
		"zero-width-space":         "look\u200b",
		"left-to-right-mark":       "look\u200e",
		"byte-order-mark":          "\ufefflook",
		"soft-hyphen":              "lo\u00adok",
		"word-joiner":              "look\u2060.txt",
		"override":                 "look\u202etxt.exe",
		"isolate":                  "\u2066look\u2069",
		"grapheme-joiner":          "lo\u034fok",
		"hangul-filler":            "look\u3164",
		"joiner-of-latin":          "lo\u200dok",
		"non-joiner-of-latin":      "lo\u200cok",
		"non-joiner-at-the-end":    "\u0645\u06cc\u200c",
		"style-of-a-letter":        "look\ufe0f",
		"style-of-a-digit":         "1\ufe0f",
		"tags":                     "look\U000e0001",
		"tag-without-a-flag":       "look\U000e0067",
		"variant-of-a-letter":      "lo\U000e0100ok",
		"mark-of-arabic":           "\u0633\u061c",
		"directory":                "lo\u200bok/file",
		"joiner-after-one-emoji":   "👨\u200d",
		"invisible-times":          "2\u2062a",
		"deprecated-shaping":       "look\u206d",
		"mongolian-vowel-in-latin": "lo\u180eok",
		"line-separator":           "lo\u2028ok",
		"paragraph-separator":      "look\u2029",
		"annotation":               "\ufff9lo\ufffaok\ufffb",
		"no-break-space-at-end":    "look\u00a0",
		"narrow-space-at-end":      "look\u202f",
		"em-space-at-end":          "look\u2003",
		"non-joiner-before-space":  "کتاب\u200c ها",
		"non-joiner-of-numbers":    "1\u200c2",
		"filler-and-a-letter":      "\u3164ㄱ",
		"filler-after-a-syllable":  "\u3164ㄱㅏㄴ\u3164",
	} {
		t.Run("refused/"+label, func(t *testing.T) {
			s := &tree{there: []string{"/x"}}
			_, err := s.resolver(pathname.NFC).ResolveForCreate("/"+refused, s.stat)
			if _, ok := errors.AsType[*pathname.InvisibleError](err); !ok || !errors.Is(err, syscall.EILSEQ) {
				t.Errorf("%+q: %v", refused, err)
			}
			s = &tree{there: []string{"/lo\u200bok", "/" + refused}}
			if got, err := s.resolver(pathname.NFC).ResolveForCreate("/"+refused, s.stat); err != nil {
				t.Errorf("existing name %+q: got %+q, %v", refused, got, err)
			}
		})
	}
	for label, allowed := range map[string]string{
		"persian":            "می\u200cخواهم.txt",
		"persian-plural":     "کتاب\u200cها",
		"persian-number":     "۵\u200cتا",
		"persian-and-number": "پرونده\u200c۵",
		"latin-number":       "5\u200cتا.pdf",
		"latin-word":         "PDF\u200cها",
		"prefix":             "می\u200cprint",
		"after-parenthesis":  "(کتاب)\u200cها",
		"ks-x-1001":          "\u3164ㄸㅗㅁ방각하",
		"ks-x-1001-open":     "a\u3164ㄹㅙ\u3164\u3164ㅆㅛㅇ",
		"ideographic-space":  "look\u3000",
		"space":              "look ",
		"arabic-heh":         "1447ه\u200d",
		"hindi":              "क्\u200dष",
		"hindi-non-joiner":   "क्\u200cष",
		"marathi":            "र्\u200dय",
		"bengali":            "র\u200d্যাব",
		"malayalam":          "ന്\u200d",
		"sinhala":            "ක්\u200dර",
		"family":             "👨\u200d👩\u200d👧\u200d👦",
		"rainbow":            "🏳\ufe0f\u200d🌈",
		"skin":               "👩🏽\u200d💻",
		"heart":              "❤\ufe0f.jpg",
		"text-heart":         "❤\ufe0e.jpg",
		"keycap":             "1\ufe0f\u20e3",
		"flag-of-england":    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
		"information":        "ℹ\ufe0f",
		"copyright":          "©\ufe0f",
		"arrow":              "↔\ufe0f",
		"variant-of-a-kanji": "葛\U000e0100飾区",
		"mongolian":          "ᠮᠣᠩᠭᠣᠯ\u180eᠠ",
		"spaces":             "a\u00a0b\u3000c",
		"soft-sign":          "объём",
	} {
		t.Run("allowed/"+label, func(t *testing.T) {
			s := &tree{}
			if _, err := s.resolver(pathname.NFC).ResolveForCreate("/"+allowed, s.stat); err != nil {
				t.Errorf("%+q: %v", allowed, err)
			}
		})
	}
}
