package i18n_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// lint returns the diagnostics of one catalog without the file name.
func lint(t *testing.T, tag string, file *fstest.MapFile) (diagnostics []i18n.Diagnostic, shown []string) {
	t.Helper()
	name := tag + "/messages.gotext.json"
	report, err := i18n.Lint(fstest.MapFS{name: file})
	must.OK(t, err)
	for _, d := range report.Diagnostics {
		if d.File != name {
			t.Errorf("got file name %q, want %q", d.File, name)
		}
		shown = append(shown, strings.TrimPrefix(d.Error(), name+":"))
	}
	return report.Diagnostics, shown
}

func TestLintMessages(t *testing.T) {
	plural := func(cases string) string {
		return `{"id": "idle-timeout", "translation": {"select": {"feature": "plural", "arg": "Seconds", "cases": {` +
			cases + `}}}}`
	}
	tests := []struct {
		name     string
		folder   string // default: fr-CA, which is complete because it inherits from French
		messages string
		want     []string // with the line
	}{
		{"unknown-message", "", text("good-bye", "Bonjour."),
			[]string{`1: message "good-bye": unknown message; is it "goodbye"?`}},
		{"without-identifier", "", `{"translation": "Bonjour."}`,
			[]string{`1: a message has no "id"; take it from the English catalog`}},
		{"does-not-decode", "", text("goodbye", "Bonjour.") + ",\n" + `{"id": "ok", "translaton": "Bon."}`,
			[]string{`2: message "ok": json: unknown field "translaton"; see the English catalog for the form`}},
		{"placeholders", "", text("language-set-nearest", "{Langue} {User}"),
			[]string{
				`1: message "language-set-nearest": the placeholder {Langue} is unknown; use {Requested}, {Tag}`,
				`1: message "language-set-nearest": the placeholder {User} is unknown; use {Requested}, {Tag}`,
				`1: message "language-set-nearest": the placeholder {Requested} is missing; put it where its value belongs`,
				`1: message "language-set-nearest": the placeholder {Tag} is missing; put it where its value belongs`,
			}},
		{"braces", "", text("goodbye", "{Bonjour} }."),
			[]string{
				`1: message "goodbye": the placeholder {Bonjour} is unknown; this message has none`,
				`1: message "goodbye": a brace stands alone; braces only enclose the name of a placeholder`,
			}},
		{"characters", "", `{"id": "goodbye", "translation": "Bon\tjour\u202e\u202e."}`,
			[]string{
				`1: message "goodbye": U+0009 is a control character or ends a line; remove it`,
				`1: message "goodbye": U+202E is a bidirectional control; remove it, a terminal orders the text by itself`,
			}},
		{"not-nfc", "", text("goodbye", "A\u0300 biento\u0302t."),
			[]string{`1: message "goodbye": the text is not in the Unicode form NFC; type its letters anew or let an editor convert it`}},
		{"escape", "", text("goodbye", "Au&nbsp;revoir."),
			[]string{`1: message "goodbye": "&nbsp;" is an escape, which readers would see; write the character`}},
		{"option", "", text("goodbye", "Au revoir avec --force."),
			[]string{`1: message "goodbye": "--force" is an option; put it into a placeholder, which is isolated in a text from right to left`}},
		{"unit", "", text("quota-state", "{Used} sur {Limit} GiB"),
			[]string{`1: message "quota-state": "{Limit} GiB" has a unit; let the value have it, or use plural forms`}},
		{"width", "", text("goodbye", "Au revoir"+strings.Repeat("é", 72)+"."),
			[]string{`1: message "goodbye": the first clause is 81 columns wide without its placeholders, and displays of 80 columns cut it off; make it shorter`}},
		{"width-of-a-clause", "", text("goodbye", "Au revoir"+strings.Repeat("é", 71)+"\u00a0; à bientôt."), nil},
		{"units", "", text("size-units", "Kio Mio"),
			[]string{`1: message "size-units": has 2 units; write the six from KiB to EiB, with a space between them`}},
		{"two-spaces", "", text("goodbye", "Au  revoir."),
			[]string{`1: message "goodbye": there are two spaces in a row; leave one`}},
		{"command-name", "", text("not-logged-in", "Utilisateur et PASS."),
			[]string{`1: message "not-logged-in": USER is missing; it is a word of the protocol and stays in every language`}},
		{"type-i", "", text("size-in-ascii", "SIZE, ASCII, TYPE\u00a0I."),
			[]string{`1: message "size-in-ascii": TYPE I is missing; it is a word of the protocol and stays in every language`}},
		{"english", "", text("goodbye", "Goodbye."),
			[]string{`1: warning: message "goodbye": is the English text; translate it unless the words are the same`}},
		{"english-plural-form", "", plural(
			`"one": "Idle timeout ({Seconds} second); closing the control connection.", "other": "{Seconds}"`),
			[]string{`1: warning: message "idle-timeout": plural form "one": is the English text; translate it unless the words are the same`}},
		{"stale", "", `{"id": "goodbye", "message": "Bye.", "translation": "Bonjour."}`,
			[]string{`1: warning: message "goodbye": translates "Bye.", but the English text is now "Goodbye."; compare the translation with it and remove "message"`}},
		{"not-stale", "", `{"id": "goodbye", "message": "Goodbye.", "translation": "Bonjour."}`, nil},
		{"fuzzy", "", `{"id": "goodbye", "translation": "Bonjour.", "fuzzy": true}`,
			[]string{`1: warning: message "goodbye": is marked "fuzzy"; compare it with the English text and remove the mark`}},
		{"empty-override", "de", text("goodbye", ""),
			[]string{`1: warning: message "goodbye": has no translation, so the built-in one is used; write one or remove the message`}},
		{"empty-form-of-newer-rules", "", plural(`"one": "{Seconds}", "many": "{Seconds}", "other": ""`), nil},
		{"exact-numbers-instead-of-a-form", "", plural(`"=0": "zéro", "=1": "une", "other": "{Seconds}"`), nil},
		{"other-missing", "de", plural(`"one": "{Seconds}"`),
			[]string{`1: message "idle-timeout": the plural form "other" is missing; add it`}},
		{"form-without-its-number", "uk",
			plural(`"one": "секунда", "few": "{Seconds}", "many": "{Seconds}", "other": "{Seconds}"`),
			[]string{`1: message "idle-timeout": plural form "one": the placeholder {Seconds} is missing, and the form stands for 1, 21, 31 and others; show the number`}},
		{"one-text-for-all-numbers", "pl", text("idle-timeout", "Sekund: {Seconds}."),
			[]string{`1: warning: message "idle-timeout": has one text for all numbers, but the language has the plural forms one, few, many, other; write one text for each`}},
		{"argument-of-english", "ja",
			`{"id": "idle-timeout", "translation": {"select": {"feature": "plural", "cases": {"other": "{Seconds}秒。"}}}}`,
			nil},
		{"form-of-a-million", "br", plural(
			`"one": "{Seconds}", "two": "{Seconds}", "few": "{Seconds}", "other": "{Seconds}"`),
			[]string{`1: message "idle-timeout": the plural form "many" is missing, which the language has for 1000000; add it`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder := test.folder
			if folder == "" {
				folder = "fr-CA"
			}
			_, got := lint(t, folder, catalogFile(folder, test.messages))
			got = slices.DeleteFunc(got, func(f string) bool { return strings.HasPrefix(f, " warning: lacks ") })
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestLintFiles(t *testing.T) {
	tests := []struct{ name, folder, file, want string }{
		{"wrong-language", "fr-CA", `{"language": "fr"}`, ` "language" is "fr"; write "fr-CA", the name of the directory`},
		{"undetermined", "und", "{}",
			` invalid language tag "und"; name the directory by a BCP 47 tag such as fr, pt-BR or zh-Hans`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			diagnostics, shown := lint(t, test.folder, &fstest.MapFile{Data: []byte(test.file)})
			if !slices.Contains(shown, test.want) || diagnostics[slices.Index(shown, test.want)].Warning {
				t.Errorf("got %q, want %q", shown, test.want)
			}
		})
	}
}

// Lint warns about missing texts of a new language. Variants and overrides may be incomplete.
func TestLintUntranslated(t *testing.T) {
	var rest []string
	for _, id := range messageIDs(t)[2:] {
		rest = append(rest, string(id))
	}
	total := len(rest) + 2
	want := []string{fmt.Sprintf(
		" warning: lacks %d of %d texts, which are shown in English: service-ready, %s", total-1, total,
		strings.Join(rest, ", "))}
	_, got := lint(t, "is", catalogFile("is", text("goodbye", "Bless.")))
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLintReport(t *testing.T) {
	report, err := i18n.Lint(fstest.MapFS{
		"is/messages.gotext.json": catalogFile("is", text("goodbye", "Bless.")),
		"fr/messages.gotext.json": catalogFile(
			"fr", "\n"+text("ok", "Bon.")+",\n"+text("ok", "Bon.")+",\n"+text("goodbye", "{")),
		"Svenska/messages.gotext.json": catalogFile("is", ""),
		"notes/README":                 {},
	})
	must.OK(t, err)
	var files []string
	for _, d := range report.Diagnostics {
		files = append(files, fmt.Sprintf("%s:%d", d.File, d.Line))
	}
	want := []string{"Svenska/messages.gotext.json:0", "fr/messages.gotext.json:3", "fr/messages.gotext.json:4",
		"is/messages.gotext.json:0"}
	if !slices.Equal(files, want) {
		t.Errorf("diagnostics at %s, want %s", files, want)
	}
	total := len(messageIDs(t))
	languages := []i18n.Coverage{{language.French, "français", total, total},
		{language.Icelandic, "íslenska", 1, total}}
	if !slices.Equal(report.Languages, languages) {
		t.Errorf("languages %v, want %v", report.Languages, languages)
	}
}

func TestLintNothing(t *testing.T) {
	for name, dir := range map[string]string{"empty": t.TempDir(), "absent": filepath.Join(t.TempDir(), "none")} {
		t.Run(name, func(t *testing.T) {
			if report, err := i18n.Lint(os.DirFS(dir)); err == nil {
				t.Errorf("missing error; got report %v", report)
			}
		})
	}
}
