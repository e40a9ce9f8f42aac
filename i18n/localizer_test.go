package i18n_test

import (
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
)

func TestLocalizer(t *testing.T) {
	bundle := load(t)
	for tag, want := range map[string]string{"fr": "fr", "fr-CA": "fr", "pt": "pt-BR", "zh-CN": "zh-Hans",
		"zh-TW": "zh-Hant", "is": "en", "und": "en"} {
		l := bundle.Localizer(language.MustParse(tag))
		if l.Tag().String() != want {
			t.Errorf("Localizer(%s) = %v, want %s", tag, l.Tag(), want)
		}
		if l != bundle.Localizer(l.Tag()) {
			t.Errorf("Localizer(%s) is not the one that sessions share", tag)
		}
	}
}

func TestColon(t *testing.T) {
	bundle := load(t)
	for tag, want := range map[string]string{"en": ": ", "de": ": ", "fr": "\u00a0: ", "ja": "：", "zh-Hans": "：",
		"zh-Hant": "：", "hy": "՝ ", "ko": ": ", "ar": ": "} {
		if got := bundle.Localizer(language.MustParse(tag)).Colon(); got != want {
			t.Errorf("%s: got %q, want %q", tag, got, want)
		}
	}
}

func TestText(t *testing.T) {
	bundle := load(t)
	tests := []struct {
		name string
		tag  string
		id   i18n.ID
		args []string
		want string
	}{
		{"plain", "de", i18n.TransferComplete, nil, "Übertragung abgeschlossen."},
		{"argument", "ja", i18n.PasswordRequired, []string{"alice"}, "aliceのパスワードが必要です。"},
		{"two-arguments", "en", i18n.LanguageSetNearest, []string{"pt-PT", "português (pt-BR)"},
			"pt-PT is not available; replies are now in português (pt-BR)."},
		{"digits-not-grouped", "de", i18n.RestartAccepted, []string{"65535"},
			"Die nächste Übertragung beginnt bei Byte 65535."},
		{"argument-like-a-format", "en", i18n.StatusUser, []string{"%d ${x} {User} 100%"},
			"Logged in as %d ${x} {User} 100%"},
		{"argument-not-utf-8", "en", i18n.StatusUser, []string{"\xff"}, "Logged in as \xff"},
		{"empty-argument", "en", i18n.StatusUser, []string{""}, "Logged in as "},

		{"english-one", "en", i18n.IdleTimeout, []string{"1"}, "Idle timeout (1 second); closing the control connection."},
		{"english-other", "en", i18n.IdleTimeout, []string{"300"},
			"Idle timeout (300 seconds); closing the control connection."},
		{"arabic-two", "ar", i18n.SizeBytes, []string{"2"}, "بايتان"},
		{"arabic-few", "ar", i18n.SizeBytes, []string{"10"}, "10 بايتات"},
		{"russian-many", "ru", i18n.SizeBytes, []string{"11"}, "11 байт"},
		{"russian-big", "ru", i18n.SizeBytes, []string{"9007199254740993"}, "9007199254740993 байта"},
		{"not-a-number", "ru", i18n.SizeBytes, []string{"?"}, "? байт"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := bundle.Localizer(language.MustParse(test.tag)).Text(test.id, test.args...); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
