package docs_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

var update = flag.Bool("update", false, "write the generated parts of pages")

// generated compares the generated parts of a page in docs with parts, which are keyed by name. With -update,
// it writes them.
func generated(t *testing.T, page string, parts map[string]string) {
	t.Helper()
	file := filepath.Join(root, "docs", page)
	before := must.ReadFile(t, file)
	text := before
	for name, content := range parts {
		begin, end := fmt.Sprintf("<!-- begin %s: go test ./docs -update -->\n", name), "<!-- end -->"
		head, rest, found := strings.Cut(text, begin)
		_, tail, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s: missing markers for %s", file, name)
		}
		text = head + begin + content + end + tail
	}
	if text == before {
		return
	}
	if !*update {
		t.Fatalf("docs/%s is not up to date: run go test ./docs -update", page)
	}
	must.OK(t, os.WriteFile(file, []byte(text), 0o644))
}
