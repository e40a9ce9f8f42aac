package acceptance_test

import (
	_ "embed"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/locales"
)

//go:embed translate_toolkit.py
var translateToolkit string

// TestCatalogsSurviveWeblate saves each catalog with Weblate's library after changing one text. The server accepts
// the files, the check reports nothing, and the formatter restores everything else byte for byte.
func TestCatalogsSurviveWeblate(t *testing.T) {
	if testing.Short() {
		t.Skip("-short needs nothing but Go; this test needs the Translate Toolkit")
	}
	const id, text = "goodbye", "Zai jian"
	dir := t.TempDir()
	must.OK(t, os.CopyFS(dir, locales.FS()))
	files, err := filepath.Glob(filepath.Join(dir, "*", "messages.gotext.json"))
	if err != nil || len(files) != len(locales.Tags()) {
		t.Fatalf("got %q, %v", files, err)
	}
	// Debian's packages are for Debian's Python, not for the first one on the path.
	save := exec.CommandContext(
		t.Context(), "/usr/bin/python3", append([]string{"-c", translateToolkit, id, text + "."}, files...)...)
	if out, err := save.CombinedOutput(); err != nil {
		t.Fatalf("%v; run: make test\n%s", err, out)
	}
	saved := os.DirFS(dir)

	bundle, err := i18n.Load(saved)
	must.OK(t, err)
	builtIn, err := i18n.Load()
	must.OK(t, err)
	for _, tag := range bundle.Tags() {
		after, before := bundle.Localizer(tag), builtIn.Localizer(tag)
		if got := after.Text(id); got != text+"." {
			t.Errorf("%v: the change was lost: %q", tag, got)
		}
		for _, id := range builtIn.IDs() {
			for _, n := range []string{"0", "1", "2", "3", "11", "21", "100", "1000000"} {
				got, want := after.Text(id, n, "x", "y"), before.Text(id, n, "x", "y")
				if id != "goodbye" && got != want {
					t.Errorf("%v, %s for %s: %q, want %q", tag, id, n, got, want)
				}
			}
		}
	}

	report, err := i18n.Lint(saved)
	must.OK(t, err)
	for _, d := range report.Diagnostics {
		if d.Message != id { // the changed text does not fit the language
			t.Error(d)
		}
	}

	formatted, err := i18n.Format(saved)
	must.OK(t, err)
	for _, tag := range locales.Tags() {
		name := tag + "/messages.gotext.json"
		before, err := fs.ReadFile(locales.FS(), name)
		must.OK(t, err)
		gotLines, wantLines := strings.Split(string(formatted[name]), "\n"), strings.Split(string(before), "\n")
		if len(gotLines) != len(wantLines) {
			t.Errorf("%s has %d lines, want %d", name, len(gotLines), len(wantLines))
			continue
		}
		changed := 0
		for i, line := range gotLines {
			if line != wantLines[i] {
				changed++
				if !strings.Contains(line, text) {
					t.Errorf("%s:%d: %s, want %s", name, i+1, line, wantLines[i])
				}
			}
		}
		if changed != 1 {
			t.Errorf("%s differs in %d lines, want 1", name, changed)
		}
	}
}
