package admin_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
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

// get requests a path with this Accept-Language header and, unless it is empty, a chosen language.
func get(handler http.Handler, path, accept, language string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Accept-Language", accept)
	if language != "" {
		request.AddCookie(&http.Cookie{Name: "babelftp-language", Value: language})
	}
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
	for _, test := range []struct{ path, accept, cookie, lang, dir, title string }{
		{"/", "", "", "en", "ltr", "babelftp administration"},
		{"/now", "fr-CH, en;q=0.5", "", "fr", "ltr", "Administration de babelftp"},
		{"/users?tenant=acme", "ar-EG", "", "ar", "rtl", "إدارة babelftp"},
		{"/activity?user=alice", "he", "", "he", "rtl", "ניהול babelftp"},
		{"/problems", "is", "", "en", "ltr", "babelftp administration"}, // most texts of the page are missing
		{"/server", "is, fr;q=0.5", "", "fr", "ltr", "Administration de babelftp"},
		{"/", "fr", "is", "fr", "ltr", "Administration de babelftp"},
		{"/", "ia", "", "ia", "ltr", "i babelftp administration"},
		{"/", "eu", "", "en", "ltr", "babelftp administration"},
		{"/users", "fr", "ja", "ja", "ltr", "babelftpの管理"},
		{"/", "fr", "eu", "fr", "ltr", "Administration de babelftp"},
		{"/", "fr", "<script>", "fr", "ltr", "Administration de babelftp"},
	} {
		response := get(handler, test.path, test.accept, test.cookie)
		body := response.Body.String()
		for _, want := range []string{
			`<html lang="` + test.lang + `" dir="` + test.dir + `">`,
			"<title>" + test.title + "</title>",
			`<option value="` + test.lang + `" lang="` + test.lang + `" data-dir="` + test.dir + `" selected>`,
			`<option value="zh-Hant" lang="zh-Hant" data-dir="ltr">繁體中文</option>`,
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
		if h.Get("Content-Language") != test.lang || h.Get("Vary") != "Accept-Language, Cookie" ||
			h.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s for %q: the header is %v", test.path, test.accept, h)
		}
	}
}

// The page fetches its texts in another language when the reader chooses one.
func TestTextsOfLanguage(t *testing.T) {
	handler := admin.PageHandler(func() *i18n.Bundle { return load(t) })
	for lang, want := range map[string]string{"fr": "Langue", "ar": "اللغة", "en": "Language"} {
		response := get(handler, "/texts?lang="+lang, "ja", "ja")
		var got struct {
			Lang  string
			Texts map[string]string
		}
		must.OK(t, json.Unmarshal(response.Body.Bytes(), &got))
		if response.Code != http.StatusOK || got.Lang != lang || got.Texts["page-language"] != want {
			t.Errorf("%s: %d, %s, %q", lang, response.Code, got.Lang, got.Texts["page-language"])
		}
	}
	if response := get(handler, "/texts?lang=eu", "", ""); response.Code != http.StatusNotFound {
		t.Errorf("a language without texts: %d", response.Code)
	}
}

// A reload of the configuration replaces the bundle, and the next page uses the new one.
func TestBundleOfEachPage(t *testing.T) {
	bundle := load(t)
	handler := admin.PageHandler(func() *i18n.Bundle { return bundle })
	get(handler, "/", "fr", "")
	bundle = load(t, fstest.MapFS{"fr/messages.gotext.json": {Data: []byte(
		`{"language": "fr", "messages": [{"id": "page-title", "translation": "Titre <b>"}]}`)}})
	body := get(handler, "/", "fr", "").Body.String()
	if !strings.Contains(body, "<title>Titre &lt;b&gt;</title>") || strings.Contains(body, "<b>") {
		t.Errorf("the page is\n%s", body)
	}
}

func TestFiles(t *testing.T) {
	handler := admin.PageHandler(func() *i18n.Bundle { return load(t) })
	for path, want := range map[string]string{
		"/":                                 "text/html; charset=utf-8",
		"/static/app.js":                    "text/javascript; charset=utf-8",
		"/static/style.css":                 "text/css; charset=utf-8",
		"/static/icon.svg":                  "image/svg+xml",
		"/static/uplot/uPlot.iife.min.js":   "text/javascript; charset=utf-8",
		"/static/uplot/uPlot.min.css":       "text/css; charset=utf-8",
		"/static/uplot/LICENSE":             "text/plain; charset=utf-8",
		"/texts?lang=fr":                    "application/json",
		"/activity?path=%2Fa&from=20261129": "text/html; charset=utf-8",
	} {
		if response := get(handler, path, "", ""); response.Code != http.StatusOK ||
			response.Header().Get("Content-Type") != want {
			t.Errorf("%s: %d, %s", path, response.Code, response.Header().Get("Content-Type"))
		}
	}
	for _, path := range []string{
		"/index.html", "/static/none", "/page.go", "/static/../page.go", "/x", "/users/acme", "/texts",
	} {
		if response := get(handler, path, "", ""); response.Code == http.StatusOK {
			t.Errorf("%s: %d", path, response.Code)
		}
	}
}

// npmFile returns a file of a package in package-lock.json.
func npmFile(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short downloads nothing; this test needs packages of npm")
	}
	file := filepath.Join("../../.tools/page/node_modules", name)
	if found, _ := filepath.Glob(file); len(found) == 0 {
		t.Fatalf("missing %s: run make .tools/page/node_modules", file)
	}
	return must.ReadFile(t, file)
}

// The page serves the files of uPlot as their authors have released them.
func TestGraphLibrary(t *testing.T) {
	for served, released := range map[string]string{
		"uPlot.iife.min.js": "uplot/dist/uPlot.iife.min.js", "uPlot.min.css": "uplot/dist/uPlot.min.css",
		"LICENSE": "uplot/LICENSE",
	} {
		if must.ReadFile(t, "static/uplot/"+served) != npmFile(t, released) {
			t.Errorf("static/uplot/%s differs from the release in package-lock.json", served)
		}
	}
}

// The page uses exactly the texts that the catalogs have for it.
func TestTexts(t *testing.T) {
	scripts, err := filepath.Glob("static/*.js")
	must.OK(t, err)
	var sources strings.Builder
	for _, name := range append(scripts, "index.html") {
		sources.WriteString(must.ReadFile(t, name))
	}
	texts := load(t).PageTexts(language.English)
	used := regexp.MustCompile(
		`(\b(?:text|filled|shared|button|closing)\('|data-(?:text|label)="|\{\{\.T "|` +
			`\b(?:text|label|hint|question|action|done|gone): ')([a-z-]+)['"]`)
	for _, found := range used.FindAllStringSubmatch(sources.String(), -1) {
		id := i18n.ID("page-" + found[2])
		if found[1] == "shared('" {
			id = i18n.ID(found[2])
		}
		if texts[id] == "" {
			t.Errorf("the page uses the text %s, which the catalogs lack", id)
		}
	}
	for id := range texts {
		name := strings.TrimPrefix(string(id), "page-")
		if !regexp.MustCompile(`["']` + name + `["']|\b` + name + `: |\b` + name + `,`).MatchString(sources.String()) {
			t.Errorf("%s is not used", id)
		}
	}
}
