package admin

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
)

//go:embed index.html static
var files embed.FS

// languageCookie is the name of the cookie in which the page stores the language that the reader has chosen.
const languageCookie = "babelftp-language"

// screens returns the screens of the page in the order of the navigation. Each has the address /NAME, and its name
// is the text page-NAME.
func screens() []string { return []string{"now", "users", "activity", "problems", "server"} }

// chosen returns the language that the parameter lang names or that the reader has chosen on the page, or else the best
// match for Accept-Language.
func chosen(b *i18n.Bundle, r *http.Request) language.Tag {
	if tag, ok := b.Match(language.Make(r.FormValue("lang"))); ok {
		return tag
	}
	if c, err := r.Cookie(languageCookie); err == nil {
		if tag, ok := b.Match(language.Make(c.Value)); ok {
			return tag
		}
	}
	return b.MatchAccept(r.Header.Get("Accept-Language"))
}

// PageHandler serves the page at / and at the address of each screen, its files below /static/, and at
// /texts?lang=TAG its texts in another language. It calls bundle for each request, because a reload of the
// configuration may replace the bundle.
func PageHandler(bundle func() *i18n.Bundle) http.Handler {
	index := template.Must(template.ParseFS(files, "index.html"))
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.FileServerFS(files))
	mux.HandleFunc("GET /texts", func(w http.ResponseWriter, r *http.Request) {
		b := bundle().ForPage()
		tag, ok := b.Match(language.Make(r.FormValue("lang")))
		if !ok {
			Fail(w, &Error{http.StatusNotFound, "the page has no texts in this language"})
			return
		}
		send(w, http.StatusOK, data{tag.String(), b.PageTexts(tag)})
	})
	page := func(w http.ResponseWriter, r *http.Request) {
		b := bundle().ForPage()
		tag := chosen(b, r)
		var html bytes.Buffer
		if err := index.Execute(&html, newView(b, tag)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Language", tag.String())
		h.Set("Vary", "Accept-Language, Cookie")
		_, _ = w.Write(html.Bytes()) // the browser may have disconnected
	}
	mux.HandleFunc("GET /{$}", page)
	for _, screen := range screens() {
		mux.HandleFunc("GET /"+screen, page)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // a new version of the server has new files
		mux.ServeHTTP(w, r)
	})
}
