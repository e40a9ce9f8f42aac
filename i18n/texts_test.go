package i18n_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/i18n"
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
	if err != nil {
		t.Fatal(err)
	}
	var c catalogue
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCataloguesPassLint shows that Lint finds nothing wrong with the catalogues that are built in.
func TestCataloguesPassLint(t *testing.T) {
	report, err := i18n.Lint(locales.FS())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Diagnostics {
		t.Error(d)
	}
	if len(report.Languages) != len(locales.Tags()) {
		t.Errorf("%d languages, want %d", len(report.Languages), len(locales.Tags()))
	}
}

func TestCataloguesAreComplete(t *testing.T) {
	english := readCatalogue(t, "en")
	for _, m := range english.Messages {
		if m.TranslatorComment == "" {
			t.Errorf("en: %s has no comment for translators", m.ID)
		}
		if text, ok := m.Translation[""]; ok && text != m.Message {
			t.Errorf("en: %s has the source %q and the text %q", m.ID, m.Message, text)
		}
	}
	for _, tag := range locales.Tags()[1:] {
		t.Run(tag, func(t *testing.T) {
			c := readCatalogue(t, tag)
			if len(c.Messages) != len(english.Messages) {
				t.Fatalf("%d messages, want the %d of English", len(c.Messages), len(english.Messages))
			}
			for i, m := range c.Messages {
				source := english.Messages[i]
				if m.ID != source.ID {
					t.Fatalf("message %d is %s, want %s", i+1, m.ID, source.ID)
				}
				if m.Message == "" {
					t.Errorf("%s does not show what it translates", m.ID)
				}
				if !reflect.DeepEqual(m.Placeholders, source.Placeholders) {
					t.Errorf("%s has the placeholders %v, English has %v", m.ID, m.Placeholders, source.Placeholders)
				}
				if len(m.Translation) == 0 {
					t.Errorf("%s has no text", m.ID)
				}
			}
		})
	}
}

// Every message shows each of its arguments, in every language.
func TestCataloguesShowArguments(t *testing.T) {
	bundle := load(t)
	for _, tag := range bundle.Tags() {
		l := bundle.Localizer(tag)
		for _, m := range readCatalogue(t, "en").Messages {
			args := make([]string, len(m.Placeholders))
			for i := range args {
				args[i] = fmt.Sprint(4071 + i)
			}
			text := l.Text(m.ID, args...)
			for _, arg := range args {
				if strings.Count(text, arg) != 1 {
					t.Errorf("%v: %s shows argument %s other than once: %q", tag, m.ID, arg, text)
				}
			}
			if strings.ContainsAny(text, "%{}") {
				t.Errorf("%v: %s is not rendered: %q", tag, m.ID, text)
			}
		}
	}
}
