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

// chosen is the language that a reader has chosen, else one that the browser asks for.
func chosen(b *i18n.Bundle, r *http.Request) language.Tag {
	if tag, ok := b.Match(language.Make(r.FormValue("lang"))); ok {
		return tag
	}
	return b.MatchAccept(r.Header.Get("Accept-Language"))
}

// PageHandler answers requests for the page at /, and for its files below /static/. It asks for the bundle again for
// each page, because a reload of the configuration may replace it.
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
		_, _ = w.Write(html.Bytes()) // a browser that has gone needs no page
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // another version of the server has another page
		mux.ServeHTTP(w, r)
	})
}
