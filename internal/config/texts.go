package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// checkLanguages validates the languages of a tenant. It returns the bundle with the offered languages, or nil if it
// is unknown.
func (t *Tenant) checkLanguages(v *validator, p yamlconf.Path) *i18n.Bundle {
	list := p.Child("languages")
	if t.Languages != nil && len(t.Languages) == 0 {
		v.report(list, "is empty: add a language, or remove the key to offer all languages")
	}
	known := true
	for i, tag := range t.Languages {
		known = v.language(list.Child(strconv.Itoa(i)), tag) && known
	}
	if !known || v.bundle == nil {
		return nil
	}
	offered := v.bundle
	if len(t.Languages) > 0 {
		var err error
		if offered, err = v.bundle.WithOverrides(t.Languages, nil); err != nil { // two tags for one language
			v.report(list, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
			return nil
		}
	}
	v.oneOf(p.Child("default_language"), t.DefaultLanguage, offered)
	return offered
}

// RefusedTexts returns the problems with message texts. They do not make a configuration invalid; the built-in texts
// are used instead.
func (c *Config) RefusedTexts() Problems {
	var problems Problems
	if c.loaded.bundle != nil {
		for _, d := range c.loaded.bundle.Refused() {
			file := filepath.Join(c.LocalesDir, filepath.FromSlash(d.File))
			message := fmt.Sprintf("message %q: %s", d.Message, d.Problem)
			problems = append(
				problems, &yamlconf.Problem{Source: file, Line: d.Line, Column: d.Column, Path: "locales_dir",
					Message: message})
		}
	}
	problems = append(problems, c.loaded.invalidTexts...)
	problems.Sort()
	return problems
}

// Warnings returns warnings about a valid configuration: missing encryption, unless tls.required is false, and texts
// that some users cannot read.
func (c *Config) Warnings() []string {
	var warnings []string
	if c.TLS.CertFile == "" && !c.TLS.ACME.IsSet() && c.TLS.Required == nil && !IsLoopback(c.Listen) {
		warnings = append(warnings, "tls has no certificate, so passwords and files are sent in the clear: set "+
			"cert_file and key_file, or acme, or required: false to accept this")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tenants)) {
		t := c.Tenants[name]
		own := cmp.Or(t.DefaultLanguage, c.DefaultLanguage)
		for _, of := range []struct {
			key   string
			texts map[language.Tag]string
		}{{"greeting", t.Greeting}, {"welcome", t.Welcome}} {
			if _, text := i18n.SelectText([]language.Tag{own}, of.texts); len(of.texts) > 0 && text == "" {
				warnings = append(
					warnings, fmt.Sprintf(
						"tenants.%s.%s has no text in %s, the default language, or in English, and users with "+
							"other languages get no text: add one of them", name, of.key, own))
			}
		}
	}
	return warnings
}

// checkMessages validates the messages of a tenant. Problems do not make the configuration invalid.
func (t *Tenant) checkMessages(v *validator, p yamlconf.Path) {
	if v.bundle == nil || len(t.Messages) == 0 {
		return
	}
	own, err := v.bundle.WithOverrides(t.Languages, t.Messages)
	if err != nil { // reported by checkLanguages
		own, _ = v.bundle.WithOverrides(nil, t.Messages) // fails for invalid languages only
	}
	for _, d := range own.Refused() {
		at, message := p.Child(string(d.Message)), d.Problem
		if d.Language != language.Und {
			at = at.Child(d.Language.String())
		} else if known := v.bundle.IDs(); !slices.Contains(known, d.Message) {
			message = "unknown message: " +
				yamlconf.Suggest(string(d.Message), known, "use an identifier of the English catalog")
		}
		if problem := v.cfg.positions.Problem(at, message); problem != nil {
			v.invalidTexts = append(v.invalidTexts, problem)
		}
	}
}
