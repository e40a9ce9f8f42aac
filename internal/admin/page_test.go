package admin_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// load loads the catalogs.
func load(t *testing.T, overlays ...fs.FS) *i18n.Bundle {
	t.Helper()
	bundle, err := i18n.Load(overlays...)
	must.OK(t, err)
	return bundle
}

// get requests a path with this Accept-Language header.
func get(handler http.Handler, path, accept string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Accept-Language", accept)
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	return response
}

func TestLanguages(t *testing.T) {
	overlay := fstest.MapFS{"is/messages.gotext.json": {Data: []byte(
		`{"language": "is", "messages": [{"id": "page-title", "translation": "Umsjón með babelftp"}]}`)}}
	complete := make([]string, 0, 100)
	for id, text := range load(t).PageTexts(language.English) {
		if id != i18n.SizeUnits { // a list with as many words as in English
			text = "i " + text
		}
		complete = append(complete, fmt.Sprintf(`{"id": %q, "translation": %q}`, id, text))
	}
	overlay["ia/messages.gotext.json"] = &fstest.MapFile{Data: []byte(
		`{"language": "ia", "messages": [` + strings.Join(complete, ",") + `]}`)}
	bundle := load(t, overlay)
	handler := admin.PageHandler(func() *i18n.Bundle { return bundle })
	for _, test := range []struct{ path, accept, lang, dir, title string }{
		{"/", "", "en", "ltr", "babelftp administration"},
		{"/", "fr-CH, en;q=0.5", "fr", "ltr", "Administration de babelftp"},
		{"/", "ar-EG", "ar", "rtl", "إدارة babelftp"},
		{"/", "he", "he", "rtl", "ניהול babelftp"},
		{"/", "is", "en", "ltr", "babelftp administration"}, // most texts of the page are missing
		{"/", "is, fr;q=0.5", "fr", "ltr", "Administration de babelftp"},
		{"/?lang=is", "fr", "fr", "ltr", "Administration de babelftp"},
		{"/", "ia", "ia", "ltr", "i babelftp administration"},
		{"/", "eu", "en", "ltr", "babelftp administration"},
		{"/?lang=ja", "fr", "ja", "ltr", "babelftpの管理"},
		{"/?lang=eu", "fr", "fr", "ltr", "Administration de babelftp"},
		{"/?lang=%22%3E%3Cscript%3E", "fr", "fr", "ltr", "Administration de babelftp"},
	} {
		response := get(handler, test.path, test.accept)
		body := response.Body.String()
		for _, want := range []string{
			`<html lang="` + test.lang + `" dir="` + test.dir + `">`,
			"<title>" + test.title + "</title>",
			`<option value="` + test.lang + `" lang="` + test.lang + `" selected>`,
			`<option value="zh-Hant" lang="zh-Hant">繁體中文</option>`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%s for %q: missing %s", test.path, test.accept, want)
			}
		}
		if strings.Contains(body, `value="is"`) {
			t.Errorf("%s for %q offers a language that lacks texts", test.path, test.accept)
		}
		if got := strings.Count(body, " selected>"); got != 1 {
			t.Errorf("%s for %q has %d languages selected", test.path, test.accept, got)
		}
		h := response.Header()
		if h.Get("Content-Language") != test.lang || h.Get("Vary") != "Accept-Language" ||
			h.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s for %q: the header is %v", test.path, test.accept, h)
		}
	}
}

// A reload of the configuration replaces the bundle, and the next page uses the new one.
func TestBundleOfEachPage(t *testing.T) {
	bundle := load(t)
	handler := admin.PageHandler(func() *i18n.Bundle { return bundle })
	get(handler, "/", "fr")
	bundle = load(t, fstest.MapFS{"fr/messages.gotext.json": {Data: []byte(
		`{"language": "fr", "messages": [{"id": "page-sessions", "translation": "Séances <b>"}]}`)}})
	body := get(handler, "/", "fr").Body.String()
	if !strings.Contains(body, "Séances &lt;b&gt;</h2>") || strings.Contains(body, "<b>") {
		t.Errorf("the page is\n%s", body)
	}
}

func TestFiles(t *testing.T) {
	handler := admin.PageHandler(func() *i18n.Bundle { return load(t) })
	for path, want := range map[string]string{
		"/":                 "text/html; charset=utf-8",
		"/static/page.js":   "text/javascript; charset=utf-8",
		"/static/style.css": "text/css; charset=utf-8",
		"/static/icon.svg":  "image/svg+xml",
	} {
		if response := get(handler, path, ""); response.Code != http.StatusOK ||
			response.Header().Get("Content-Type") != want {
			t.Errorf("%s: %d, %s", path, response.Code, response.Header().Get("Content-Type"))
		}
	}
	for _, path := range []string{"/index.html", "/static/none", "/page.go", "/static/../page.go", "/x"} {
		if response := get(handler, path, ""); response.Code == http.StatusOK {
			t.Errorf("%s: %d", path, response.Code)
		}
	}
}

// The page uses exactly the texts that the catalogs have for it. TestLanguages checks the texts in the HTML
// by rendering it.
func TestTexts(t *testing.T) {
	var sources strings.Builder
	for _, name := range []string{"index.html", "static/page.js", "static/table.js", "static/format.js"} {
		sources.WriteString(must.ReadFile(t, name))
	}
	texts := load(t).PageTexts(language.English)
	for _, used := range regexp.MustCompile(`\b(text|filled|shared)\('([^']*)'`).FindAllStringSubmatch(sources.String(), -1) {
		id := i18n.ID("page-" + used[2])
		if used[1] == "shared" {
			id = i18n.ID(used[2])
		}
		if texts[id] == "" {
			t.Errorf("a script uses the text %s, which the page lacks", id)
		}
	}
	for id := range texts {
		name := strings.TrimPrefix(string(id), "page-")
		if !regexp.MustCompile(`["']` + name + `["']`).MatchString(sources.String()) {
			t.Errorf("%s is not used", id)
		}
	}
}
