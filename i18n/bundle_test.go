package i18n_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/locales"
)

func load(t testing.TB, overlays ...fs.FS) *i18n.Bundle {
	t.Helper()
	bundle, err := i18n.Load(overlays...)
	must.OK(t, err)
	return bundle
}

// catalogFile returns a catalog with these messages, each a JSON object.
func catalogFile(tag string, messages string) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, `{"language": %q, "messages": [%s]}`, tag, messages)}
}

func text(id i18n.ID, translation string) string {
	return fmt.Sprintf(`{"id": %q, "translation": %q}`, id, translation)
}

// declaredIDs returns the constants in id.go.
func declaredIDs(t *testing.T) []i18n.ID {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "id.go", nil, 0)
	must.OK(t, err)
	var ids []i18n.ID
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, value := range spec.Values {
			id, err := strconv.Unquote(value.(*ast.BasicLit).Value)
			must.OK(t, err)
			ids = append(ids, i18n.ID(id))
		}
		return false
	})
	return ids
}

// messageIDs returns the messages of the English catalog.
func messageIDs(t *testing.T) []i18n.ID {
	t.Helper()
	var ids []i18n.ID
	for _, m := range readCatalog(t, "en").Messages {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestIdentifiersAreTheEnglishMessages(t *testing.T) {
	// Tests of internal/admin check the messages of the page, and tests of internal/ftp/control the words in
	// syntax.
	messages := slices.DeleteFunc(messageIDs(t), func(id i18n.ID) bool { return !id.InReply() || id.InSyntax() })
	ids := declaredIDs(t)
	for _, id := range ids {
		if !slices.Contains(messages, id) {
			t.Errorf("the English catalog lacks %q of id.go", id)
		}
	}
	for _, id := range messages {
		if !slices.Contains(ids, id) {
			t.Errorf("id.go lacks %q of the English catalog", id)
		}
	}
}

func TestTags(t *testing.T) {
	overlay := fstest.MapFS{
		"is/messages.gotext.json": catalogFile("is", text(i18n.Goodbye, "Bless.")),
		"cy/messages.gotext.json": catalogFile("cy", text(i18n.Goodbye, "Hwyl fawr.")),
		"fr/messages.gotext.json": catalogFile("fr", text(i18n.Goodbye, "Salut.")),
		"README":                  {Data: []byte("not a catalog")},
		"drafts/notes":            {Data: []byte("not one either")},
	}
	want := fmt.Sprint(append(locales.Tags(), "cy", "is"))
	bundle := load(t, overlay)
	if got := fmt.Sprint(bundle.Tags()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	bundle.Tags()[0] = language.Und
	if got := fmt.Sprint(bundle.Tags()); got != want {
		t.Errorf("a caller changed the bundle: %s", got)
	}
}

func TestCompleteness(t *testing.T) {
	overlay := fstest.MapFS{
		"is/messages.gotext.json":    catalogFile("is", text(i18n.Goodbye, "Bless.")+","+text(i18n.OK, "")),
		"fr-CA/messages.gotext.json": catalogFile("fr-CA", text(i18n.Goodbye, "Bonjour.")),
	}
	names := make(map[string]string)
	total := len(messageIDs(t))
	for _, c := range load(t, overlay).Completeness() {
		names[c.Tag.String()] = c.Name
		want := total // fr-CA inherits the texts of fr
		if c.Tag == language.Icelandic {
			want = 1
		}
		if c.Translated != want || c.Total != total {
			t.Errorf("%v: %d of %d, want %d of %d", c.Tag, c.Translated, c.Total, want, total)
		}
	}
	for tag, want := range map[string]string{"en": "English", "fr": "français", "ja": "日本語", "zh-Hans": "简体中文",
		"ar": "العربية"} {
		if names[tag] != want {
			t.Errorf("Name(%s) = %q, want %q", tag, names[tag], want)
		}
	}
}

func TestOverlay(t *testing.T) {
	first := fstest.MapFS{
		"is/messages.gotext.json": catalogFile("is", text(i18n.Goodbye, "Bless.")),
		"fr/messages.gotext.json": catalogFile(
			"fr", text(i18n.Goodbye, "Salut.")+","+text(i18n.LoggedIn, "Bienvenue.")),
	}
	second := fstest.MapFS{
		"fr/messages.gotext.json":    catalogFile("fr", text(i18n.Goodbye, "À bientôt.")),
		"fr-CA/messages.gotext.json": catalogFile("fr-CA", text(i18n.Goodbye, "Bonjour.")),
	}
	bundle := load(t, first, second)
	tests := []struct {
		name string
		tag  string
		id   i18n.ID
		want string
	}{
		{"added", "is", i18n.Goodbye, "Bless."},
		{"english-where-missing", "is", i18n.TransferComplete, "Transfer complete."},
		{"overridden", "fr", i18n.LoggedIn, "Bienvenue."},
		{"overridden-twice", "fr", i18n.Goodbye, "À bientôt."},
		{"not-overridden", "fr", i18n.TransferComplete, "Transfert terminé."},
		{"variant", "fr-CA", i18n.Goodbye, "Bonjour."},
		{"parent-where-missing", "fr-CA", i18n.LoggedIn, "Bienvenue."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := bundle.Localizer(language.MustParse(test.tag)).Text(test.id); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// In a mounted ConfigMap, the entries are symbolic links into a directory whose name starts with dots.
func TestOverlayFromConfigMap(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "..2026_01_01")
	must.OK(t, os.MkdirAll(filepath.Join(data, "is"), 0o755))
	file := catalogFile("is", text(i18n.Goodbye, "Bless."))
	must.OK(t, os.WriteFile(filepath.Join(data, "is", "messages.gotext.json"), file.Data, 0o644))
	for link, target := range map[string]string{"..data": "..2026_01_01", "is": "..data/is"} {
		must.OK(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	bundle := load(t, os.DirFS(dir))
	if got := bundle.Localizer(language.Icelandic).Text(i18n.Goodbye); got != "Bless." {
		t.Errorf("got %q", got)
	}
}

// Load accepts fields and forms that translation tools write.
func TestOverlayForms(t *testing.T) {
	tests := map[string]string{
		"gotext-fields":   `{"id": "goodbye", "key": "", "meaning": "", "comment": "", "fuzzy": true, "position": "x:1", "translation": "Bless."}`,
		"per-cent-sign":   `{"id": "goodbye", "translation": "Bless till 100%!"}`,
		"plural-objects":  `{"id": "size-bytes", "translation": {"select": {"feature": "plural", "arg": "Bytes", "cases": {"one": {"msg": "Eitt bæti"}, "other": {"msg": "{Bytes} bæti"}}}}}`,
		"list-as-id":      `{"id": ["goodbye", "Goodbye."], "translation": "Bless."}`,
		"features":        `{"id": "goodbye", "translation": {"msg": "Bless.", "example": "Bless."}, "placeholders": [{"id": "X", "features": [{"type": "plural"}]}]}`,
		"empty-forms":     `{"id": "goodbye", "translation": {"select": {"feature": "plural", "cases": {"one": {"msg": ""}, "other": {"msg": ""}}}}}`,
		"exact-number":    `{"id": "size-bytes", "translation": {"select": {"feature": "plural", "arg": "Bytes", "cases": {"=1": {"msg": "Eitt bæti"}, "one": {"msg": "{Bytes} bæti"}, "other": {"msg": "{Bytes} bæti"}}}}}`,
		"empty-other":     `{"id": "size-bytes", "translation": {"select": {"feature": "plural", "arg": "Bytes", "cases": {"one": {"msg": ""}, "many": {"msg": "{Bytes} bæti"}, "other": {"msg": ""}}}}}`,
		"dollar-and-name": `{"id": "size-bytes", "translation": "${Bytes}"}`,
	}
	want := map[string]string{
		"gotext-fields":   "Bless.",
		"per-cent-sign":   "Bless till 100%!",
		"plural-objects":  "Eitt bæti",
		"list-as-id":      "Bless.",
		"features":        "Bless.",
		"empty-forms":     "Goodbye.",
		"exact-number":    "Eitt bæti",
		"empty-other":     "1 bæti",
		"dollar-and-name": "$1",
	}
	for name, message := range tests {
		t.Run(name, func(t *testing.T) {
			file := catalogFile("is", message)
			file.Data = append([]byte("\ufeff"), file.Data...) // like Windows editors
			l := load(t, fstest.MapFS{"is/messages.gotext.json": file}).Localizer(language.Icelandic)
			id, args := i18n.Goodbye, []string(nil)
			if strings.Contains(message, "Bytes") {
				id, args = i18n.SizeBytes, []string{"1"}
			}
			if got := l.Text(id, args...); got != want[name] {
				t.Errorf("got %q, want %q", got, want[name])
			}
		})
	}
}

func TestOverlayErrors(t *testing.T) {
	plural := func(cases string) string {
		return `{"id": "idle-timeout", "translation": {"select": {"feature": "plural", "arg": "Seconds", "cases": {` +
			cases + `}}}}`
	}
	tests := []struct {
		name     string
		folder   string // default: it
		messages string
		want     []string
	}{
		{"unknown-message", "", text("good-bye", "Bless."), []string{`"good-bye": unknown message; is it "goodbye"?`}},
		{"number-unknown", "", plural(`"=01": "{Seconds}", "other": "{Seconds}"`),
			[]string{`"idle-timeout"`, `"=01" is not a plural form; remove it`}},
		{"nested-select", "", plural(`"other": {"select": {"cases": {"one": "1"}}}`),
			[]string{`"idle-timeout"`, "write plain text"}},
		{"select-by-gender", "",
			`{"id": "goodbye", "translation": {"select": {"feature": "gender", "cases": {"other": "x"}}}}`,
			[]string{`"goodbye"`, "use plural"}},
		{"select-by-unknown", "",
			`{"id": "status-user", "translation": {"select": {"feature": "plural", "arg": "Bytes", "cases": {"other": "x"}}}}`, []string{`"status-user"`, `"Bytes" is not`, "{User}"}},
		{"misspelled-in-text", "", `{"id": "goodbye", "translation": {"message": "Bless."}}`,
			[]string{`"goodbye"`, `"message"`}},
		{"not-an-object", "", text("goodbye", "Bless.") + `, "Bless."`, []string{"number 2"}},
		{"line-separator", "", text("goodbye", "Bless.\u2028Bless."), []string{`"goodbye"`, "U+2028"}},
		{"escape", "", `{"id": "goodbye", "translation": "\u001b[2J"}`, []string{`"goodbye"`, "U+001B"}},
		{"bidi-isolate", "", text("goodbye", "\u2066Bless\u2069."), []string{`"goodbye"`, "U+2066"}},
		{"lone-surrogate", "", `{"id": "goodbye", "translation": "Bless \ud800."}`, []string{`"goodbye"`, "U+FFFD"}},
		{"outer-space", "", text("goodbye", "Bless. "), []string{`"goodbye"`, "white space"}},
		{"arabic-digit", "", text("entering-passive", "Modo passivo ٢"),
			[]string{`"entering-passive"`, "remove it"}},
		{"parenthesis-before-port", "", text("entering-extended-passive", "Modo (passivo)"),
			[]string{`"entering-extended-passive"`, "remove it"}},
		{"full-stop-before-protocols", "", text("data-protocol-unsupported", "Non supportato."),
			[]string{`"data-protocol-unsupported"`, "remove it"}},
		{"english-not-ascii", "en", text("goodbye", "Ciào."), []string{`"goodbye"`, "ASCII", "4.1"}},
		{"folder-not-canonical", "pt_br", text("goodbye", "Bless."), []string{`"pt_br"`, "name the directory"}},
		{"folder-not-for-lang", "es-419", text("goodbye", "Adiós."), []string{`"es-419"`, "letters only"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			folder := test.folder
			if folder == "" {
				folder = "is"
			}
			checkLoadError(t, folder, catalogFile(folder, test.messages), test.want)
		})
	}
}

func TestOverlayFileErrors(t *testing.T) {
	tests := []struct {
		name string
		file string
		want []string
	}{
		{"not-json", "{\n\"language\": \"it\",\n\"messages\": [,]}", []string{"gotext.json:3:", "not JSON"}},
		{"two-objects", "{\"language\": \"it\"}\n{}", []string{"gotext.json:2:", "not JSON"}},
		{"macros", `{"language": "is", "macros": {"x": "y"}}`,
			[]string{`"macros" are not supported; write their texts into the messages`}},
		{"unknown-top-field", `{"language": "is", "makros": {}}`, []string{"makros"}},
		{"latin-1", "{\"language\": \"it\", \"messages\": [{\"id\": \"goodbye\", \"translation\": \"Citt\xe0\"}]}",
			[]string{"not UTF-8", "save it"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkLoadError(t, "is", &fstest.MapFile{Data: []byte(test.file)}, test.want)
		})
	}
}

// checkLoadError checks that the file or its message is refused with an error that contains the file name and
// all strings in want.
func checkLoadError(t *testing.T, folder string, file *fstest.MapFile, want []string) {
	t.Helper()
	name := folder + "/messages.gotext.json"
	bundle, err := i18n.Load(fstest.MapFS{name: file})
	if err == nil {
		var refused []error
		for _, d := range bundle.Refused() {
			refused = append(refused, d)
		}
		err = errors.Join(refused...)
	}
	if err == nil {
		t.Fatal("missing error")
	}
	for _, part := range append(want, name) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("missing %q in the error: %v", part, err)
		}
	}
}

// An invalid text is ignored, and the other texts in its file are used.
func TestRefused(t *testing.T) {
	first := fstest.MapFS{"fr/messages.gotext.json": catalogFile(
		"fr", text(i18n.OK, "Bon.")+","+text(i18n.TransferComplete, "Fini."))}
	second := fstest.MapFS{"fr/messages.gotext.json": catalogFile(
		"fr", text(i18n.Goodbye, "Salut {User}.")+","+text(i18n.OK, "Bon\n.")+","+
			`{"id": "idle-timeout", "translation": {"select": {"feature": "plural", "arg": "Seconds", "cases": {"one": {"msg": "Une {X}"}, "other": {"msg": "{Seconds}"}}}}},`+
			`{"id": "size-bytes", "translation": {"select": {"feature": "plural", "arg": "Bytes", "cases": {"one": {"msg": "Un seul"}, "other": {"msg": "{Bytes} octets"}}}}}`)}
	bundle := load(t, first, second)
	builtIn, l := load(t).Localizer(language.French), bundle.Localizer(language.French)
	for id, want := range map[i18n.ID]string{
		i18n.Goodbye: builtIn.Text(i18n.Goodbye), i18n.OK: "Bon.", i18n.TransferComplete: "Fini.",
		i18n.IdleTimeout: builtIn.Text(i18n.IdleTimeout, "1"), i18n.SizeBytes: "Un seul",
	} {
		if got := l.Text(id, "1"); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	var refused []i18n.ID
	for _, d := range bundle.Refused() {
		refused = append(refused, d.Message)
	}
	if want := []i18n.ID{i18n.Goodbye, i18n.OK, i18n.IdleTimeout}; !slices.Equal(refused, want) {
		t.Errorf("got refused texts %v, want %v", refused, want)
	}
}

// Load reports the problems of all files at once.
func TestLoadJoinsErrors(t *testing.T) {
	_, err := i18n.Load(
		fstest.MapFS{
			"is/messages.gotext.json": {Data: []byte("{")},
			"cy/messages.gotext.json": catalogFile("de", ""),
		},
		fstest.MapFS{"notes": {}},
	)
	if err == nil {
		t.Fatal("missing error")
	}
	for _, want := range []string{"is/messages.gotext.json:1: is not JSON", "cy/messages.gotext.json",
		"no <language tag>/messages.gotext.json"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in the error: %v", want, err)
		}
	}
}

func TestOverlayMissing(t *testing.T) {
	if _, err := i18n.Load(os.DirFS(filepath.Join(t.TempDir(), "none"))); err == nil {
		t.Error("missing error")
	}
}
