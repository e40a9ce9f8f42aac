package i18n_test

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// TestMessagesAreSent checks that the program uses the constant of each message. The doctor only recognizes replies,
// so it does not count.
func TestMessagesAreSent(t *testing.T) {
	sent := map[string]bool{}
	used := regexp.MustCompile(`\bi18n\.([A-Z]\w*)`)
	must.OK(t, filepath.WalkDir("../internal", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"doctor", "testkit"}, entry.Name()):
			return fs.SkipDir
		case filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go"):
			for _, m := range used.FindAllStringSubmatch(must.ReadFile(t, path), -1) {
				sent[m[1]] = true
			}
		}
		return nil
	}))
	sent["SizeBytes"], sent["SizeUnits"] = true, true // parts of other texts
	constant := regexp.MustCompile(`(?m)^\t(\w+) +ID = "`)
	for _, m := range constant.FindAllStringSubmatch(must.ReadFile(t, "id.go"), -1) {
		if !sent[m[1]] {
			t.Errorf("nothing sends %s; remove it from id.go and from the catalogs", m[1])
		}
	}
}
