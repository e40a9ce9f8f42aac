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

// chosen returns the language that the reader has chosen, or else the best match for Accept-Language.
func chosen(b *i18n.Bundle, r *http.Request) language.Tag {
	if tag, ok := b.Match(language.Make(r.FormValue("lang"))); ok {
		return tag
	}
	return b.MatchAccept(r.Header.Get("Accept-Language"))
}

// PageHandler serves the page at / and its files below /static/. It calls bundle for each page, because a
// reload of the configuration may replace the bundle.
func PageHandler(bundle func() *i18n.Bundle) http.Handler {
	index := template.Must(template.ParseFS(files, "index.html"))
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.FileServerFS(files))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
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
		h.Set("Vary", "Accept-Language")
		_, _ = w.Write(html.Bytes()) // the browser may have disconnected
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // a new version of the server has new files
		mux.ServeHTTP(w, r)
	})
}
