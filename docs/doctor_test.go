package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/doctor"
)

// TestDoctor compares the table of what babelftp doctor finds with the program, or writes it with -update.
func TestDoctor(t *testing.T) {
	bundle, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	placeholder := regexp.MustCompile(`\{(\w+)\}`)
	var b strings.Builder
	b.WriteString("| finding | seen of a server | seen in the log |\n| --- | --- | --- |\n")
	for _, k := range doctor.Kinds() {
		cause := placeholder.ReplaceAllStringFunc(bundle.Template(language.English, k.Cause), func(name string) string {
			return "*" + strings.ToLower(strings.Trim(name, "{}")) + "*"
		})
		log := slices.Clone(k.Log)
		for i, text := range log {
			if strings.Contains(text, "=") {
				log[i] = "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
			}
		}
		fmt.Fprintf(&b, "| `%s`: %s | %s | %s |\n", k.ID, cause, k.Server, strings.Join(log, "; "))
	}
	generated(t, filepath.Join("guides", "troubleshooting.md"), map[string]string{"doctor": b.String()})
}
