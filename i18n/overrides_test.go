package i18n_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// overrides are the texts of a tenant, without plural forms.
type overrides map[i18n.ID]map[language.Tag]string

func (o overrides) texts() map[i18n.ID]map[language.Tag]i18n.Text {
	texts := make(map[i18n.ID]map[language.Tag]i18n.Text, len(o))
	for id, byTag := range o {
		texts[id] = make(map[language.Tag]i18n.Text, len(byTag))
		for tag, text := range byTag {
			texts[id][tag] = i18n.Text{Msg: text}
		}
	}
	return texts
}

func override(t testing.TB, b *i18n.Bundle, languages string, texts overrides) *i18n.Bundle {
	t.Helper()
	overridden, err := b.WithOverrides(tags(languages), texts.texts())
	must.OK(t, err)
	if refused := overridden.Refused(); len(refused) > 0 {
		t.Fatal(refused)
	}
	return overridden
}

func tags(names string) []language.Tag {
	var tags []language.Tag
	for _, name := range strings.Fields(names) {
		tags = append(tags, language.MustParse(name))
	}
	return tags
}

func TestWithOverridesLanguages(t *testing.T) {
	bundle := load(t)
	tests := []struct{ name, languages, want string }{
		{"all", "", fmt.Sprint(bundle.Tags())},
		{"one", "ja", "[ja]"},
		{"in-the-order-given", "ja en fr", "[ja en fr]"},
		{"relatives", "pt zh-TW en-GB", "[pt-BR zh-Hant en]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			overridden := override(t, bundle, test.languages, nil)
			if got := fmt.Sprint(overridden.Tags()); got != test.want {
				t.Errorf("Tags: got %s, want %s", got, test.want)
			}
			var covered []language.Tag
			for _, c := range overridden.Completeness() {
				covered = append(covered, c.Tag)
				if c.Translated != c.Total || c.Total != len(messageIDs(t)) {
					t.Errorf("%v: %d of %d", c.Tag, c.Translated, c.Total)
				}
			}
			if got := fmt.Sprint(covered); got != test.want {
				t.Errorf("Completeness: got %s, want %s", got, test.want)
			}
		})
	}
}

func TestWithOverridesLocalizer(t *testing.T) {
	bundle := load(t)
	overridden := override(t, bundle, "ja pt", overrides{i18n.Goodbye: {language.Japanese: "またどうぞ。"}})
	for tag, want := range map[string]string{"ja": "ja", "ja-JP": "ja", "pt-PT": "pt-BR", "en": "ja", "fr": "ja",
		"und": "ja"} {
		l := overridden.Localizer(language.MustParse(tag))
		if l.Tag().String() != want {
			t.Errorf("Localizer(%s) = %v, want %s", tag, l.Tag(), want)
		}
		if l != overridden.Localizer(l.Tag()) {
			t.Errorf("Localizer(%s) is not the one that sessions share", tag)
		}
	}
	if pt := language.BrazilianPortuguese; overridden.Localizer(pt) != bundle.Localizer(pt) {
		t.Error("a language without overrides does not share its localizer")
	}
}

// TestWithOverridesTexts tests languages with and without a text of the tenant. The operator's overlay has
// one message in Icelandic and one in Canadian French.
func TestWithOverridesTexts(t *testing.T) {
	bundle := load(t, fstest.MapFS{
		"is/messages.gotext.json":    catalogFile("is", text(i18n.OK, "Allt í lagi.")),
		"fr-CA/messages.gotext.json": catalogFile("fr-CA", text(i18n.Goodbye, "Bonjour.")),
	})
	overridden := override(t, bundle, "en fr fr-CA de pt-BR is", overrides{
		i18n.Goodbye:       {language.English: "Bye from Acme.", language.French: "Acme vous salue."},
		i18n.QuotaExceeded: {language.French: "Acme n’a plus de place. 100%"},
		i18n.PasswordRequired: {language.English: "Acme wants the password of {User}.",
			language.Portuguese: "Senha de {User}, 100% {User}?"},
		i18n.OK:         {language.English: "Acme says OK."},
		i18n.TypeBinary: {language.Icelandic: "Tvíundarform."},
		i18n.TypeASCII:  {language.CanadianFrench: "Texte, eh."},
	})
	tests := []struct {
		name string
		tag  string
		id   i18n.ID
		args []string
		want string // empty: the text of the catalog
	}{
		{"english", "en", i18n.Goodbye, nil, "Bye from Acme."},
		{"french", "fr", i18n.Goodbye, nil, "Acme vous salue."},
		{"a-reader-of-german-reads-german", "de", i18n.Goodbye, nil, ""},
		{"other-messages-stay", "en", i18n.LoggedIn, nil, ""},

		{"not-in-english", "en", i18n.QuotaExceeded, nil, ""},
		{"not-in-english-nor-german", "de", i18n.QuotaExceeded, nil, ""},
		{"per-cent", "fr", i18n.QuotaExceeded, nil, "Acme n’a plus de place. 100%"},

		{"placeholder", "en", i18n.PasswordRequired, []string{"alice"}, "Acme wants the password of alice."},
		{"placeholder-twice", "pt-BR", i18n.PasswordRequired, []string{"%s"}, "Senha de %s, 100% %s?"},

		{"variant-has-the-text-of-its-language", "fr-CA", i18n.QuotaExceeded, nil, "Acme n’a plus de place. 100%"},
		{"variant-has-one-in-the-catalog", "fr-CA", i18n.Goodbye, nil, ""},
		{"variant-has-its-own", "fr-CA", i18n.TypeASCII, nil, "Texte, eh."},
		{"language-has-not-that-of-its-variant", "fr", i18n.TypeASCII, nil, ""},

		{"missing-and-the-tenant-has-english", "is", i18n.Goodbye, nil, "Bye from Acme."},
		{"missing-and-the-tenant-has-french", "is", i18n.QuotaExceeded, nil, ""},
		{"missing-and-the-tenant-has-it", "is", i18n.TypeBinary, nil, "Tvíundarform."},
		{"not-missing-and-the-tenant-has-english", "is", i18n.OK, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tag := language.MustParse(test.tag)
			builtIn := bundle.Localizer(tag).Text(test.id, test.args...)
			if test.want == "" {
				test.want = builtIn
			} else if builtIn == test.want {
				t.Fatal("the catalog has this text itself")
			}
			if got := overridden.Localizer(tag).Text(test.id, test.args...); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	for _, c := range overridden.Completeness() {
		if want := 2; c.Tag == language.Icelandic && c.Translated != want {
			t.Errorf("%d messages are in Icelandic, want %d", c.Translated, want)
		}
	}
}

func TestWithOverridesPlurals(t *testing.T) {
	builtIn := load(t)
	forms := func(cases i18n.Cases) (bundle *i18n.Bundle, refused string) {
		text := i18n.Text{Select: &i18n.Select{Feature: "plural", Arg: "Seconds", Cases: cases}}
		bundle, err := builtIn.WithOverrides(
			nil, map[i18n.ID]map[language.Tag]i18n.Text{i18n.IdleTimeout: {language.Polish: text}})
		must.OK(t, err)
		return bundle, fmt.Sprint(bundle.Refused())
	}
	bundle, refused := forms(
		i18n.Cases{"one": "Sekunda.", "few": "{Seconds} sekundy.", "many": "{Seconds} sekund.", "=0": "Od razu.",
			"other": "{Seconds} sekund."})
	if refused != "[]" {
		t.Fatal(refused)
	}
	for seconds, want := range map[string]string{"0": "Od razu.", "1": "Sekunda.", "2": "2 sekundy.", "5": "5 sekund.",
		"22": "22 sekundy."} {
		if got := bundle.Localizer(language.Polish).Text(i18n.IdleTimeout, seconds); got != want {
			t.Errorf("%s seconds: got %q, want %q", seconds, got, want)
		}
	}
	for want, cases := range map[string]i18n.Cases{
		`language pl: the plural form "other" is missing; add it`:                                              {"one": "Sekunda."},
		`language pl: "some" is not a plural form; remove it`:                                                  {"some": "{Seconds}.", "other": "{Seconds}."},
		`language pl: plural form "other": the placeholder {Seconds} is missing;`:                              {"other": "Za długo."},
		`language pl: the plural form "few" is missing, which the language has for 2, 3, 4 and others; add it`: {"one": "Sekunda.", "many": "{Seconds}.", "other": "{Seconds}."},
		`language pl: plural form "few": the placeholder {Seconds} is missing, and the form stands for 2, 3,`:  {"one": "Sekunda.", "few": "Sekundy.", "many": "{Seconds}.", "other": "{Seconds}."},
		`language pl: plural form "few": the placeholder {User} is unknown; use {S`:                            {"few": "{User}.", "other": "{Seconds}."},
	} {
		bundle, refused := forms(cases)
		if !strings.Contains(refused, want) {
			t.Errorf("got %s, want %s", refused, want)
		}
		if got, want := bundle.Localizer(language.Polish).Text(i18n.IdleTimeout, "5"),
			builtIn.Localizer(language.Polish).Text(i18n.IdleTimeout, "5"); got != want {
			t.Errorf("the text is %q, want the built-in one, %q", got, want)
		}
	}
}

func TestWithOverridesTwice(t *testing.T) {
	bundle := load(t)
	first := override(t, bundle, "en fr", overrides{
		i18n.Goodbye:  {language.English: "First.", language.French: "Premier."},
		i18n.LoggedIn: {language.French: "Entrez."},
	})
	second := override(t, first, "fr", overrides{i18n.Goodbye: {language.French: "Second."}})
	for _, test := range []struct {
		bundle *i18n.Bundle
		id     i18n.ID
		want   string
	}{
		{second, i18n.Goodbye, "Second."},
		{second, i18n.LoggedIn, "Entrez."},
		{first, i18n.Goodbye, "Premier."},
		{bundle, i18n.Goodbye, "Au revoir."},
	} {
		if got := test.bundle.Localizer(language.French).Text(test.id); got != test.want {
			t.Errorf("%s: got %q, want %q", test.id, got, test.want)
		}
	}
	if _, err := first.WithOverrides(tags("de"), nil); err == nil {
		t.Error("the bundle offers German although the first bundle does not have it")
	}
}

func TestWithOverridesErrors(t *testing.T) {
	bundle := load(t)
	for _, test := range []struct {
		name      string
		languages string
		want      []string
	}{
		{"no-such-language", "fr is", []string{"no catalog for the language is; use one of en, ar, "}},
		{"languages-joined", "is cy", []string{"language is;", "language cy;"}},
		{"language-twice", "fr de fr",
			[]string{"the language fr is offered as fr, which is already in the list; remove one"}},
		{"relatives", "pt-BR pt", []string{"the language pt is offered as pt-BR, which is already in the list"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			overridden, err := bundle.WithOverrides(tags(test.languages), nil)
			if err == nil || overridden != nil {
				t.Fatalf("got %v, %v", overridden, err)
			}
			containsInOrder(t, err.Error(), test.want)
		})
	}
}

// An invalid text of a tenant is ignored.
func TestWithOverridesRefused(t *testing.T) {
	bundle := load(t)
	one := func(id i18n.ID, tag, text string) overrides {
		return overrides{id: {language.MustParse(tag): text}}
	}
	for _, test := range []struct {
		name      string
		languages string
		texts     overrides
		want      []string
	}{
		{"unknown-message", "", one("goodby", "fr", "Salut."),
			[]string{`message "goodby": unknown message; is it "goodbye"?`}},
		{"word-of-a-message", "", one("disabled", "fr", "Non."),
			[]string{`message "disabled": unknown message; is it "links-disabled" or "user-disabled"?`}},
		{"like-several", "", one("type-asci", "fr", "Texte."), []string{`is it "type-ascii"?`}},
		{"like-none", "", one("bananas", "fr", "Bananes."),
			[]string{`message "bananas": unknown message; take the identifiers from the English catalog`}},
		{"like-one-of-the-page", "", one("unban", "fr", "Non."),
			[]string{`message "unban": unknown message; take the identifiers`}},
		{"message-of-the-page", "", one("page-title", "fr", "Gestion"),
			[]string{`message "page-title": is only for administrators`}},
		{"empty-message", "", one("", "fr", "Rien."), []string{`unknown message; take the identifiers`}},

		{"no-texts", "", overrides{i18n.Goodbye: {}},
			[]string{`message "goodbye": has no texts; write one for a language, or remove the message`}},
		{"language-not-offered", "fr ja", one(i18n.Goodbye, "de", "Tschüs."),
			[]string{`message "goodbye": language de: the language is not offered; write one of fr, ja, or remove the text`}},
		{"two-texts", "", overrides{i18n.OK: {language.Portuguese: "Certo. ", language.BrazilianPortuguese: "Até."}},
			[]string{`message "ok": language pt: the text begins`,
				`message "ok": language pt-BR: the texts for pt and pt-BR are both for pt-BR; remove one`}},

		// the other checks are tested for catalogs
		{"unknown-placeholder", "", one(i18n.Goodbye, "fr", "Salut {User}."),
			[]string{`message "goodbye": language fr: the placeholder {User} is unknown; this message has none`}},
		{"empty", "", one(i18n.Goodbye, "fr", ""), []string{"language fr: the text is empty; write one"}},
		{"not-utf-8", "", one(i18n.Goodbye, "fr", "Salut\xff."), []string{"U+FFFD is not a character"}},
		{"english-not-ascii", "", one(i18n.Goodbye, "en-GB", "Café closed."),
			[]string{"language en-GB:", "is not ASCII"}},
		{"space-in-a-syntax", "", one("syntax-pathname", "fr", "nom de fichier"),
			[]string{`language fr: a word in the syntax of a command contains a space; use a hyphen`}},
		{"all-joined", "", overrides{"goodby": {language.French: "Salut."},
			i18n.OK: {language.French: "", language.German: "\t."}}, []string{
			`message "goodby"`, `message "ok": language de`, `message "ok": language fr`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			overridden, err := bundle.WithOverrides(tags(test.languages), test.texts.texts())
			must.OK(t, err)
			containsInOrder(t, fmt.Sprint(overridden.Refused()), test.want)
			for _, tag := range overridden.Tags() {
				if overridden.Localizer(tag) != bundle.Localizer(tag) {
					t.Errorf("an invalid text changed the text for readers of %v", tag)
				}
			}
		})
	}
	mixed := one(i18n.Goodbye, "fr", "Salut {User}.")
	mixed[i18n.Goodbye][language.German] = "Tschüs."
	overridden, err := bundle.WithOverrides(nil, mixed.texts())
	must.OK(t, err)
	for tag, want := range map[language.Tag]string{language.German: "Tschüs.",
		language.French: bundle.Localizer(language.French).Text(i18n.Goodbye)} {
		if got := overridden.Localizer(tag).Text(i18n.Goodbye); got != want {
			t.Errorf("%v: got %q, want %q", tag, got, want)
		}
	}
}

// containsInOrder checks that text contains the strings in want in this order.
func containsInOrder(t *testing.T, text string, want []string) {
	t.Helper()
	rest := text
	for _, part := range want {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("got\n%s\nwhich lacks %q, or has it in another order", text, part)
		}
		rest = after
	}
}
