package i18n_test

import (
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/locales"
)

func TestSize(t *testing.T) {
	bundle := load(t)
	for _, test := range []struct {
		tag   string
		bytes int64
		want  string
	}{
		{"en", 0, "0 bytes"}, {"en", 1, "1 byte"}, {"en", 1023, "1023 bytes"}, {"en", 1 << 10, "1 KiB"},
		{"en", 5 << 28, "1.2 GiB"}, {"en", 10 << 30, "10 GiB"}, {"en", 1 << 40, "1 TiB"},
		{"en", 1<<20 - 1<<8, "1023.8 KiB"}, {"en", 1<<63 - 1, "8 EiB"},
		{"de", 5 << 28, "1,2 GiB"}, {"fr", 5 << 28, "1,2 Gio"}, {"fr", 17, "17\u00a0octets"}, {"ru", 5 << 28, "1,2 ГиБ"},
		{"ru", 22, "22 байта"}, {"uk", 5 << 28, "1,2 ГіБ"}, {"fi", 29, "29 tavua"}, {"fi", 5 << 28, "1,2 Git"},
		{"pt-BR", 5 << 28, "1,2 GiB"}, {"ja", 5 << 28, "1.2 GiB"}, {"ja", 29, "29バイト"}, {"zh-Hans", 29, "29 字节"},
		{"ar", 5 << 28, "1.2 غيبيبايت"}, {"ar", 29, "29 بايتًا"}, {"ar", 2, "بايتان"}, {"fa", 29, "29 بایت"},
		{"hi", 5 << 28, "1.2 GiB"}, {"bn", 5 << 28, "1.2 GiB"}, {"mr", 29, "29 बाइट"}, {"sw", 29, "baiti 29"},
	} {
		if got := localizer(t, bundle, test.tag).Size(test.bytes); got != test.want {
			t.Errorf("%s: %d bytes are %q, want %q", test.tag, test.bytes, got, test.want)
		}
	}
}

// Each language has its units, and no size contains an escape, a placeholder or digits other than ASCII.
func TestSizesInEveryLanguage(t *testing.T) {
	bundle := load(t)
	for _, tag := range locales.Tags() {
		seen := map[string]bool{}
		for n := int64(1); n > 0; n <<= 10 {
			size := localizer(t, bundle, tag).Size(n)
			if seen[size] || strings.ContainsAny(size, `{}\\`) || n >= 1<<10 && !strings.HasPrefix(size, "1 ") {
				t.Errorf("%s: %d bytes are %q", tag, n, size)
			}
			seen[size] = true
		}
	}
}

func TestList(t *testing.T) {
	bundle := load(t)
	for tag, want := range map[string]string{
		"en": "a, b, c", "fr": "a, b, c", "th": "a, b, c", "he": "a, b, c", "ja": "a、b、c", "zh-Hant": "a、b、c",
		"ar": "a، b، c", "fa": "a، b، c", "ur": "a، b، c",
	} {
		if got := localizer(t, bundle, tag).List([]string{"a", "b", "c"}); got != want {
			t.Errorf("%s: got %q, want %q", tag, got, want)
		}
	}
}

// The name of a language ends with the tag that LANG accepts.
func TestLanguageName(t *testing.T) {
	for tag, want := range map[string]string{
		"fr": "français (fr)", "zh-Hans": "简体中文 (zh-Hans)", "ar": "العربية (ar)", "sr": "српски (sr)",
		"fil": "Filipino (fil)", "tlh": "tlh",
	} {
		if got := i18n.LanguageName(language.MustParse(tag)); got != want {
			t.Errorf("LanguageName(%s) = %q, want %q", tag, got, want)
		}
	}
	for _, tag := range locales.Tags() {
		if got := i18n.LanguageName(language.MustParse(tag)); !strings.HasSuffix(got, " ("+tag+")") {
			t.Errorf("LanguageName(%s) = %q", tag, got)
		}
	}
}

func TestPrompt(t *testing.T) {
	bundle := load(t)
	for tag, want := range map[string]string{
		"en": "Password required for alice: ", "ja": "aliceのパスワードが必要です： ", "fr": "Mot de passe requis pour alice\u00a0: ",
	} {
		if got := localizer(t, bundle, tag).Prompt(i18n.PasswordRequired, "alice"); got != want {
			t.Errorf("%s: got %q, want %q", tag, got, want)
		}
	}
}

func localizer(t *testing.T, bundle *i18n.Bundle, tag string) *i18n.Localizer {
	t.Helper()
	return bundle.Localizer(language.MustParse(tag))
}
