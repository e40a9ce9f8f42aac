package i18n_test

import (
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/locales"
)

// The tests decode catalogs without the package, to find texts that the package would skip.
type catalog struct {
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

// A translation maps plural forms to texts. The key is empty for a text without plural forms.
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

func readCatalog(t *testing.T, tag string) catalog {
	t.Helper()
	data, err := fs.ReadFile(locales.FS(), tag+"/messages.gotext.json")
	must.OK(t, err)
	var c catalog
	must.OK(t, json.Unmarshal(data, &c))
	return c
}

// TestCatalogsPassLint checks that Lint finds no problems in the embedded catalogs.
func TestCatalogsPassLint(t *testing.T) {
	report, err := i18n.Lint(locales.FS())
	must.OK(t, err)
	for _, d := range report.Diagnostics {
		t.Error(d)
	}
	if len(report.Languages) != len(locales.Tags()) {
		t.Errorf("%d languages, want %d", len(report.Languages), len(locales.Tags()))
	}
}

// Every English message has a comment for translators, and a text.
func TestEnglishCatalog(t *testing.T) {
	for _, m := range readCatalog(t, "en").Messages {
		if m.TranslatorComment == "" {
			t.Errorf("%s has no comment for translators", m.ID)
		}
		if text, ok := m.Translation[""]; ok && text != m.Message {
			t.Errorf("%s has the source %q and the text %q", m.ID, m.Message, text)
		}
	}
}
