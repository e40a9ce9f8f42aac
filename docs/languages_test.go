package docs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/text/language/display"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestLanguages compares the list of languages with the built-in ones. With -update, it writes the list.
func TestLanguages(t *testing.T) {
	bundle, err := i18n.Load()
	must.OK(t, err)
	var b strings.Builder
	for _, c := range bundle.Completeness() {
		if c.Translated != c.Total {
			t.Errorf("%v has %d texts of %d", c.Tag, c.Translated, c.Total)
		}
		if b.Len() > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "[%s](../../locales/%s)", display.English.Tags().Name(c.Tag), c.Tag)
	}
	b.WriteString(".\n")
	generated(t, filepath.Join("guides", "languages-and-greetings.md"), map[string]string{"languages": b.String()})
}

// TestRulesOfALanguage checks the guide's example of language rules, except for the terms that it leaves out.
func TestRulesOfALanguage(t *testing.T) {
	found := 0
	for _, b := range blocks(t, "yaml") {
		if !strings.HasPrefix(b.text, firstLineOfRules) {
			continue
		}
		found++
		report, err := i18n.Lint(fstest.MapFS{
			"sv/messages.gotext.json": {Data: []byte(`{"language": "sv", "messages": []}`)},
			"sv/language.yaml":        {Data: []byte(b.text)},
		})
		must.OK(t, err)
		for _, d := range report.Diagnostics {
			if !d.Warning && !strings.HasSuffix(d.Problem, "missing; add its translation") {
				t.Errorf("%s: %v", b.name(), d)
			}
		}
	}
	if found == 0 {
		t.Error("no page shows the rules of a language")
	}
}
