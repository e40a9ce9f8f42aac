package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
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
	b.WriteString("| finding | cause | seen |\n| --- | --- | --- |\n")
	for _, k := range doctor.Kinds() {
		cause := placeholder.ReplaceAllStringFunc(bundle.Template(language.English, k.Cause), func(name string) string {
			return "*" + strings.ToLower(strings.Trim(name, "{}")) + "*"
		})
		seen := "server"
		switch debug := strings.HasSuffix(strings.Join(k.Log, ""), "(debug lines)"); {
		case k.Server && k.Log != nil:
			seen = "both"
		case len(k.Log) == 1 && debug:
			seen = "debug lines"
		case k.Log != nil:
			seen = "log"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.ID, cause, seen)
	}
	generated(t, filepath.Join("guides", "troubleshooting.md"), map[string]string{"doctor": b.String()})
}
