package i18n_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/locales"
)

// A catalogue is read here without the package's own reader, so that a text
// which it would pass over shows.
type catalogue struct {
	Language string
	Messages []message
}

type message struct {
	ID                i18n.ID
	Message           string
	Translation       translation
	TranslatorComment string
	Placeholders      []struct {
		ID, String, Type, UnderlyingType, Expr string
		ArgNum                                 int
	}
}

// A translation is its texts by plural form, by "" where there are no forms.
type translation map[string]string

func (tr *translation) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		var text string
		err := json.Unmarshal(data, &text)
		*tr = translation{"": text}
		return err
	}
	var t struct {
		Select struct {
			Cases map[string]struct{ Msg string }
		}
	}
	err := json.Unmarshal(data, &t)
	*tr = translation{}
	for form, text := range t.Select.Cases {
		(*tr)[form] = text.Msg
	}
	return err
}

func readCatalogue(t *testing.T, tag string) catalogue {
	t.Helper()
	data, err := fs.ReadFile(locales.FS(), tag+"/messages.gotext.json")
	must.OK(t, err)
	var c catalogue
	must.OK(t, json.Unmarshal(data, &c))
	return c
}

// TestCataloguesPassLint shows that Lint finds nothing wrong with the catalogues that are built in.
func TestCataloguesPassLint(t *testing.T) {
	report, err := i18n.Lint(locales.FS())
	must.OK(t, err)
	for _, d := range report.Diagnostics {
		t.Error(d)
	}
	if len(report.Languages) != len(locales.Tags()) {
		t.Errorf("%d languages, want %d", len(report.Languages), len(locales.Tags()))
	}
}

// Translators read what each message is for, and the texts that they translate.
func TestEnglishCatalogue(t *testing.T) {
	for _, m := range readCatalogue(t, "en").Messages {
		if m.TranslatorComment == "" {
			t.Errorf("%s has no comment for translators", m.ID)
		}
		if text, ok := m.Translation[""]; ok && text != m.Message {
			t.Errorf("%s has the source %q and the text %q", m.ID, m.Message, text)
		}
	}
}
