package i18n_test

import (
	"testing"
	"testing/fstest"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
)

func TestPageTexts(t *testing.T) {
	overlay := fstest.MapFS{
		"is/messages.gotext.json": catalogFile("is", text("page-user", "Notandi")),
		"fr/messages.gotext.json": catalogFile("fr", text("page-of", "{Part} parmi {Whole}")),
	}
	bundle := load(t, overlay)
	tests := []struct {
		tag  string
		id   i18n.ID
		want string
	}{
		{"en", "page-stale", "Not connected. The page shows the state as of {Time}."},
		{"ja", "page-of", "{Part} / {Whole}"},
		{"fr", "page-of", "{Part} parmi {Whole}"},
		{"fr-CA", "page-of", "{Part} parmi {Whole}"},
		{"is", "page-user", "Notandi"},
		{"is", "page-tenant", "Tenant"},
		{"is", i18n.Goodbye, ""},
		{"nb", "doctor-storage-refuses", "Lagringstjenesten avviser forespørsler eller kan ikke nås."},
	}
	for _, test := range tests {
		texts := bundle.PageTexts(language.MustParse(test.tag))
		if got := texts[test.id]; got != test.want {
			t.Errorf("%s: %s is %q, want %q", test.tag, test.id, got, test.want)
		}
		for _, id := range messageIDs(t) {
			shared := id == i18n.AuditUnavailable || id == i18n.SizeUnits || id == "doctor-storage-refuses"
			if _, ok := texts[id]; ok != (id.OnPage() || shared) {
				t.Errorf("%s: has %s: %t", test.tag, id, ok)
			}
		}
	}
}

func TestMatchAccept(t *testing.T) {
	bundle := load(t)
	for accept, want := range map[string]string{
		"":                                  "en",
		"fr-CH, fr;q=0.9, en;q=0.8":         "fr",
		"is, ar;q=0.5":                      "ar",
		"de;q=0.1, ja;q=0.9":                "ja",
		"zh-TW":                             "zh-Hant",
		"pt":                                "pt-BR",
		"eu, *;q=0.1":                       "en",
		"is":                                "en",
		"\xff;;q=1":                         "en",
		"en-GB-oxendict,en;q=0.9,fr;q=0.95": "en",
	} {
		if got := bundle.MatchAccept(accept).String(); got != want {
			t.Errorf("MatchAccept(%q) = %s, want %s", accept, got, want)
		}
	}
}
