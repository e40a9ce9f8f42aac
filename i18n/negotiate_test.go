package i18n_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
)

func TestNegotiate(t *testing.T) {
	bundle := override(t, load(t), "en fr de es pt-BR ja zh-Hans zh-Hant ar ru nl uk", nil)
	tests := []struct {
		arg   string
		tag   string
		exact bool
		err   error
	}{
		{arg: "fr", tag: "fr", exact: true},
		{arg: "pt-br", tag: "pt-BR", exact: true},

		// Another variant of the same language (RFC 2640, 4.2). The region does not matter.
		{arg: "en-AU", tag: "en", exact: true},
		{arg: "pt", tag: "pt-BR", exact: true},
		{arg: "pt-PT", tag: "pt-BR"},
		{arg: "zh", tag: "zh-Hans", exact: true},
		{arg: "zh-TW", tag: "zh-Hant", exact: true},
		{arg: "es-419", tag: "es", exact: true},
		{arg: "cmn", tag: "zh-Hans"}, // the language code of Mandarin
		{arg: "ja-Jpan-JP", tag: "ja", exact: true},
		{arg: "fr-x-acadie", tag: "fr", exact: true},
		{arg: "fr-abcde", tag: "fr"}, // an unknown subtag
		{arg: "i-default", tag: "en", exact: true},

		// Another script of the same language.
		{arg: "ru-Latn", tag: "ru"},
		// Another language is refused, even if many readers know it.
		{arg: "nb", err: i18n.ErrUnsupported},
		{arg: "eu", err: i18n.ErrUnsupported},
		{arg: "yue", err: i18n.ErrUnsupported},
		{arg: "i-klingon", err: i18n.ErrUnsupported},
		// Valid by the grammar of RFC 2640, but not a language.
		{arg: "und", err: i18n.ErrUnsupported},
		{arg: "x", err: i18n.ErrUnsupported},
		{arg: "french", err: i18n.ErrUnsupported},
		{arg: "abcdefgh", err: i18n.ErrUnsupported},

		{arg: "", err: i18n.ErrSyntax},
		{arg: "fr-", err: i18n.ErrSyntax},
		{arg: "fr--CA", err: i18n.ErrSyntax},
		{arg: "abcdefghi", err: i18n.ErrSyntax},
		{arg: "fr-abcdefghi", err: i18n.ErrSyntax},
		{arg: "419", err: i18n.ErrSyntax},
		{arg: "en_US", err: i18n.ErrSyntax},
		{arg: " fr", err: i18n.ErrSyntax},
		{arg: "fr\x00", err: i18n.ErrSyntax},
	}
	for _, test := range tests {
		match, err := bundle.Negotiate(test.arg)
		if !errors.Is(err, test.err) {
			t.Errorf("Negotiate(%q): error %v, want %v", test.arg, err, test.err)
			continue
		}
		if err != nil {
			continue
		}
		if match.Tag.String() != test.tag || match.Exact != test.exact {
			t.Errorf(
				"Negotiate(%q) = %v, exact %t; want %s, exact %t", test.arg, match.Tag, match.Exact, test.tag,
				test.exact)
		}
	}
}

// All Norwegian tags match Bokmål. Croatian and Danish are not substitutes.
func TestNegotiateScandinavianAndSerbian(t *testing.T) {
	bundle := override(t, load(t), "en da nb fi hr sr", nil)
	for arg, want := range map[string]i18n.Match{
		"nb":      {Tag: language.MustParse("nb"), Exact: true},
		"no":      {Tag: language.MustParse("nb"), Exact: true},
		"nn":      {Tag: language.MustParse("nb")},
		"sr":      {Tag: language.MustParse("sr"), Exact: true},
		"sr-Cyrl": {Tag: language.MustParse("sr"), Exact: true},
		"sr-ME":   {Tag: language.MustParse("sr"), OtherScript: true}, // in Latin script
		"sh":      {Tag: language.MustParse("sr"), OtherScript: true},
	} {
		if match, err := bundle.Negotiate(arg); err != nil || match != want {
			t.Errorf("Negotiate(%q) = %v, error %v; want %v", arg, match, err, want)
		}
	}
	for _, arg := range []string{"bs", "sv", "is", "fo"} {
		if match, err := bundle.Negotiate(arg); !errors.Is(err, i18n.ErrUnsupported) {
			t.Errorf("Negotiate(%q) = %v, error %v; want %v", arg, match, err, i18n.ErrUnsupported)
		}
	}
}

// A language of an overlay is found by its tag, and also gets the requests that it matches better than the
// built-in ones.
func TestNegotiateOverlay(t *testing.T) {
	overlay := fstest.MapFS{}
	for _, tag := range []string{"zh-Hant", "pt-PT", "nb", "sr-Latn", "en-GB"} {
		overlay[tag+"/messages.gotext.json"] = catalogFile(tag, "")
	}
	bundle := override(t, load(t, overlay), "en en-GB zh-Hans zh-Hant pt-BR pt-PT nb sr-Latn", nil)
	tests := []struct {
		arg   string
		tag   string
		exact bool
	}{
		{arg: "zh-hant", tag: "zh-Hant", exact: true},
		{arg: "zh-TW", tag: "zh-Hant", exact: true},
		{arg: "zh-HK", tag: "zh-Hant", exact: true},
		{arg: "zh", tag: "zh-Hans", exact: true},
		{arg: "pt-PT", tag: "pt-PT", exact: true},
		{arg: "pt-AO", tag: "pt-PT"},
		{arg: "pt", tag: "pt-BR", exact: true},
		{arg: "no", tag: "nb", exact: true},
		{arg: "sr-Latn-RS", tag: "sr-Latn", exact: true},
		{arg: "en-GB", tag: "en-GB", exact: true},
		{arg: "en-AU", tag: "en-GB"},
		{arg: "en", tag: "en", exact: true},
	}
	for _, test := range tests {
		match, err := bundle.Negotiate(test.arg)
		if err != nil || match.Tag.String() != test.tag || match.Exact != test.exact {
			t.Errorf(
				"Negotiate(%q) = %v, exact %t, error %v; want %s, exact %t", test.arg, match.Tag, match.Exact, err,
				test.tag, test.exact)
		}
	}
}

// A language in another script than the requested one is better than none. Its name includes the script.
func TestNegotiateScript(t *testing.T) {
	latin := load(t, fstest.MapFS{"sr-Latn/messages.gotext.json": catalogFile("sr-Latn", "")})
	bundle := load(t)
	for _, test := range []struct {
		bundle    *i18n.Bundle
		arg, name string // empty for an error
	}{
		{bundle, "sr-Latn", "српски, ћирилица (sr)"},
		{bundle, "sr-Latn-RS", "српски, ћирилица (sr)"},
		{bundle, "sr-Cyrl", "српски (sr)"},
		{bundle, "az-Cyrl", "azərbaycan, latın (az)"},
		{bundle, "kk-Latn", "қазақ тілі, кирилл жазуы (kk)"},
		{bundle, "ur-Deva", "اردو, عربی (ur)"},
		{bundle, "en-Cyrl", "English, Latin (en)"},
		{bundle, "eu", ""},
		{override(t, latin, "en sr-Latn", nil), "sr-Cyrl", "srpskohrvatski (sr-Latn)"},
		{override(t, bundle, "en zh-Hans", nil), "zh-TW", "简体中文 (zh-Hans)"},
		{override(t, bundle, "en zh-Hans", nil), "yue", ""},
		{override(t, bundle, "en pt-PT", nil), "pt-BR", "português europeu (pt-PT)"},
	} {
		match, err := test.bundle.Negotiate(test.arg)
		if name := match.Name(); (err != nil) != (test.name == "") || err == nil && name != test.name {
			t.Errorf("Negotiate(%q) = %q, %v; want %q", test.arg, name, err, test.name)
		}
	}
}

// LANG accepts the tags that FEAT shows.
func TestFeatTagIsNegotiable(t *testing.T) {
	bundle := load(t)
	for _, tag := range bundle.Tags() {
		match, err := bundle.Negotiate(i18n.FeatTag(tag))
		if err != nil || match != (i18n.Match{Tag: tag, Exact: true}) {
			t.Errorf("Negotiate(%s) = %v, %v", i18n.FeatTag(tag), match, err)
		}
	}
}

func TestSelectText(t *testing.T) {
	tests := []struct {
		name  string
		texts map[string]string
		tag   string
		want  string
	}{
		{"exact", map[string]string{"en": "Welcome", "fr": "Bienvenue"}, "fr", "Bienvenue"},
		{"variant", map[string]string{"en": "Welcome", "pt-PT": "Bem-vindo"}, "pt-BR", "Bem-vindo"},
		{"region", map[string]string{"en": "Welcome", "zh-CN": "欢迎"}, "zh-Hans", "欢迎"},
		{"other-script", map[string]string{"en": "Welcome", "zh-TW": "歡迎"}, "zh-Hans", "Welcome"},
		{"english", map[string]string{"en": "Welcome", "de": "Willkommen"}, "ja", "Welcome"},
		{"english-variant", map[string]string{"en-GB": "Welcome", "de": "Willkommen"}, "ja", "Welcome"},
		{"default", map[string]string{"en": "Welcome", "tr": "Hoş geldiniz"}, "ja", "Hoş geldiniz"},
		{"variant-of-the-default", map[string]string{"en": "Welcome", "tr-CY": "Hoş geldiniz"}, "ja", "Hoş geldiniz"},
		{"neither", map[string]string{"fr": "Bienvenue", "de": "Willkommen"}, "ja", ""},
		{"only-one", map[string]string{"fr": "Bienvenue"}, "ja", "Bienvenue"},
		{"no-tag", map[string]string{"?": "Hi"}, "ja", "Hi"},
		{"not-the-one-without-a-tag", map[string]string{"?": "Hi", "en": "Welcome"}, "ja", "Welcome"},
		{"undetermined", map[string]string{"en": "Welcome", "de": "Willkommen"}, "und", "Welcome"},
		{"empty", nil, "ja", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			texts := map[language.Tag]string{}
			for tag, text := range test.texts {
				texts[language.Make(tag)] = text
			}
			_, got := i18n.SelectText([]language.Tag{language.MustParse(test.tag), language.Turkish}, texts)
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The reader's language has precedence over the order of the choices, and the choices over the default.
func TestSelectTextOfChoices(t *testing.T) {
	welcome := map[language.Tag]string{language.French: "Bienvenue!", language.Arabic: "مرحبا!"}
	greeting := map[language.Tag]string{
		language.English: "Hello", language.French: "Bonjour", language.Arabic: "أهلا", language.Japanese: "ようこそ",
	}
	for _, test := range []struct{ reader, server, want string }{
		{"en", "fr", "Hello"}, {"ja", "fr", "ようこそ"}, {"fr", "en", "Bienvenue!"}, {"ar", "en", "مرحبا!"},
		{"fr-CA", "en", "Bienvenue!"}, {"de", "en", "Hello"}, {"de", "fr", "Bienvenue!"}, {"de", "ja", "ようこそ"},
		{"de", "tr", "Hello"},
	} {
		wanted := []language.Tag{language.MustParse(test.reader), language.MustParse(test.server)}
		tag, text := i18n.SelectText(wanted, welcome, greeting)
		if text != test.want || welcome[tag] != text && greeting[tag] != text {
			t.Errorf("a reader of %s gets %q of %s, want %q", test.reader, text, tag, test.want)
		}
	}
}

func FuzzNegotiate(f *testing.F) {
	for _, arg := range []string{"", "fr", "FR-ca", "zh-Hant-TW", "i-klingon", "x", "en-x-pirate", "es-419", "en_US",
		"fr-a-bb-b", "de-u-co-phonebk", "日本", "a-b-c-d"} {
		f.Add(arg)
	}
	bundle := load(f)
	tags := bundle.Tags()
	grammar := regexp.MustCompile(`\A[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*\z`)
	f.Fuzz(func(t *testing.T, arg string) {
		match, err := bundle.Negotiate(arg)
		if got, want := errors.Is(err, i18n.ErrSyntax), !grammar.MatchString(arg); got != want {
			t.Fatalf("Negotiate(%q): %v; a syntax error is %t, want %t", arg, err, got, want)
		}
		if err != nil {
			if !errors.Is(err, i18n.ErrSyntax) && !errors.Is(err, i18n.ErrUnsupported) {
				t.Fatalf("Negotiate(%q): unexpected error %v", arg, err)
			}
			return
		}
		if !slices.Contains(tags, match.Tag) {
			t.Fatalf("Negotiate(%q) = %v, want one of %v", arg, match.Tag, tags)
		}
		if strings.EqualFold(arg, match.Tag.String()) && !match.Exact {
			t.Fatalf("Negotiate(%q) = %v, not exact", arg, match.Tag)
		}
	})
}
