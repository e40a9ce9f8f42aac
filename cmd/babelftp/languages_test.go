package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/locales"
)

// catalogFolder returns a directory with one catalog, whose messages begin on its second line, and the path
// of the catalog.
func catalogFolder(t *testing.T, tag string, messages ...string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, tag, "messages.gotext.json")
	must.OK(t, os.Mkdir(filepath.Dir(file), 0o755))
	content := fmt.Sprintf("{\"language\": %q, \"messages\": [\n%s]}", tag, strings.Join(messages, ",\n"))
	must.OK(t, os.WriteFile(file, []byte(content), 0o644))
	return dir, file
}

func TestLanguagesLint(t *testing.T) {
	_, stdout, _ := output(t, "", "languages")
	var total int
	if _, err := fmt.Sscanf(stdout, "en %d", &total); err != nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	review := i18n.Review(locales.FS(), language.French)
	complete := fmt.Sprintf("fr  %d/%[1]d  100 %%  %s  français\n", total, review)
	if !strings.Contains(stdout, review) || !strings.HasPrefix(review, "machine-assisted, no native speaker yet, 20") {
		t.Errorf("got reviewer %q of French in\n%s", review, stdout)
	}
	message := func(id, translation string) string {
		return fmt.Sprintf(`{"id": %q, "translation": %q}`, id, translation)
	}
	for _, tc := range []struct {
		name     string
		tag      string
		messages []string
		code     int
		stdout   string
		stderr   []string // prefixes of the lines, after the file name
	}{
		{"clean", "fr", []string{message("goodbye", "Salut.")}, 0, complete, nil},
		{"warning", "fr", []string{message("goodbye", "Goodbye.")}, 0, complete,
			[]string{`:2: warning: message "goodbye": is the English text; translate it`}},
		{"error", "fr", []string{message("goodbye", "{User}")}, 1, "",
			[]string{`:2: message "goodbye": the placeholder {User} is unknown; this message has none`}},
		{"errors-and-warning", "fr", []string{message("goodbye", "{User}"), message("ok", "OK."),
			message("fine", "Bien.")}, 1, "",
			[]string{
				`:2: message "goodbye": the placeholder {User} is unknown; this message has none`,
				`:3: warning: message "ok": is the English text; translate it`,
				`:4: message "fine": unknown message; take the identifiers from the English catalog`,
			}},
		{"untranslated", "is", nil, 0, fmt.Sprintf("is  0/%d    0 %%  -  íslenska\n", total),
			[]string{fmt.Sprintf(
				": warning: lacks %d of %[1]d texts, which are shown in English: service-ready, ", total)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, file := catalogFolder(t, tc.tag, tc.messages...)
			code, stdout, stderr := output(t, "", "languages", "--lint", dir)
			if code != tc.code || stdout != tc.stdout {
				t.Errorf("exit code %d, want %d; standard output:\n%s\nwant:\n%s", code, tc.code, stdout, tc.stdout)
			}
			lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
			if code != 0 {
				if last := lines[len(lines)-1]; !strings.HasPrefix(last, "babelftp: the catalogs have ") {
					t.Errorf("the last line is %q", last)
				}
				lines = lines[:len(lines)-1]
			}
			if stderr == "" {
				lines = nil
			}
			if len(lines) != len(tc.stderr) {
				t.Fatalf("%d lines on standard error, want %d:\n%s", len(lines), len(tc.stderr), stderr)
			}
			for i, want := range tc.stderr {
				if !strings.HasPrefix(lines[i], file+want) {
					t.Errorf("got  %s\nwant %s", lines[i], file+want)
				}
			}
		})
	}
}

func TestLanguagesLintFindsNoCatalog(t *testing.T) {
	dir := t.TempDir()
	code, stdout, stderr := output(t, "", "languages", "--lint", dir)
	if want := "babelftp: " + dir + ": no <language tag>/messages.gotext.json"; code != 1 || stdout != "" ||
		!strings.HasPrefix(stderr, want) {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestLanguagesFormat(t *testing.T) {
	dir, file := catalogFolder(t, "fr", `{"id": "goodbye", "translation": "Salut."}`)
	for _, want := range []string{file + "\n", ""} { // the second run finds nothing to change
		if code, stdout, stderr := output(t, "", "languages", "--format", dir); code != 0 || stdout != want ||
			stderr != "" {
			t.Errorf("exit code %d: %s%s, want %s", code, stdout, stderr, want)
		}
	}
	want := "{\n  \"language\": \"fr\",\n  \"messages\": [\n    {\n      \"id\": \"goodbye\",\n      " +
		"\"translation\": \"Salut.\"\n    }\n  ]\n}\n"
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}

	dir, file = catalogFolder(t, "fr", `{"id": "goodbye", "translaton": "Salut."}`)
	before := must.ReadFile(t, file)
	code, stdout, stderr := output(t, "", "languages", "--format", dir)
	if after, err := os.ReadFile(file); err != nil || code != 1 || stdout != "" ||
		!strings.Contains(stderr, `unknown field "translaton"`) || string(after) != before {
		t.Errorf("exit code %d: %s%s; the file is now %s, %v", code, stdout, stderr, after, err)
	}
}

// If the disk is full, the catalog stays unchanged.
func TestLanguagesFormatOnFullDisk(t *testing.T) {
	dir, file := catalogFolder(t, "fr", `{"id": "goodbye", "translation": "`+strings.Repeat("Salut. ", 1000)+`"}`)
	before := must.ReadFile(t, file)
	cmd := program(t, "languages", "--format", dir)
	cmd.Args = append([]string{"sh", "-c", `ulimit -f 1; exec "$@"`, "sh"}, cmd.Args...)
	cmd.Path = "/bin/sh"
	text, err := cmd.CombinedOutput()
	if after := must.ReadFile(t, file); err == nil || after != before {
		t.Errorf("got %s, %v; the file has %[4]d bytes, want %[3]d", text, err, len(before), len(after))
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// TestLanguagesReviewed checks the reviewers in the list.
func TestLanguagesReviewed(t *testing.T) {
	dir, _ := catalogFolder(t, "is")
	rules := []byte("reviewed: Alice\nreviewed_on: 2026-11-23\n")
	must.OK(t, os.WriteFile(filepath.Join(dir, "is", "language.yaml"), rules, 0o644))
	_, stdout, _ := output(t, "", "languages", "--locales", dir)
	if !strings.Contains(stdout, "  Alice, 2026-11-23") || !strings.Contains(stdout, "  machine-assisted") {
		t.Errorf("standard output:\n%s", stdout)
	}
}
