// Package page shows administrators in a browser what the server does: one page of HTML, which asks the API of
// package admin.
//
// The page needs no build step and nothing from another server. Its texts come from the catalogues of package i18n.
// Their language is the one that the reader chooses, else one that the browser asks for (Accept-Language, RFC 9110,
// section 12.5.4). Languages that lack texts of the page are not offered. Reasons and errors come from the server in
// English, and say so (WCAG 3.1.2). Nothing in the page is secret: the API wants a login. The HTML has no script and
// no style in it, so that a content security policy can forbid them.
package page

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

// Handler answers requests for the page at /, and for its files below /static/. It asks for the bundle again for each
// page, because a reload of the configuration may replace it.
func Handler(bundle func() *i18n.Bundle) http.Handler {
	index := template.Must(template.ParseFS(files, "index.html"))
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.FileServerFS(files))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		b := bundle().ForPage()
		tag, ok := b.Match(language.Make(r.URL.Query().Get("lang")))
		if !ok {
			tag = b.MatchAccept(r.Header.Get("Accept-Language"))
		}
		var html bytes.Buffer
		if err := index.Execute(&html, newView(b, tag)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Language", tag.String())
		h.Set("Vary", "Accept-Language")
		_, _ = w.Write(html.Bytes()) // a browser that has gone needs no page
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // another version of the server has another page
		mux.ServeHTTP(w, r)
	})
}
