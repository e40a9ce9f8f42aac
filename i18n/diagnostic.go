package i18n

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/language"
)

// A Diagnostic describes a problem of a catalog or a tenant's text, and how to fix it.
type Diagnostic struct {
	File     string       // <tag>/messages.gotext.json, or empty
	Line     int          // line of the message, starting at 1, or 0
	Column   int          // in characters
	Message  ID           // empty for the whole file
	Language language.Tag // language of a tenant's text
	Problem  string       // without a full stop
	Warning  bool         // may be intended
}

// Error formats the diagnostic in one line as "file:line: problem", which editors understand.
func (d Diagnostic) Error() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Line > 0 {
		fmt.Fprintf(&b, ":%d", d.Line)
	}
	if d.File != "" {
		b.WriteString(": ")
	}
	if d.Warning {
		b.WriteString("warning: ")
	}
	if d.Message != "" {
		fmt.Fprintf(&b, "message %q: ", d.Message)
	}
	if d.Language != language.Und {
		fmt.Fprintf(&b, "language %s: ", d.Language)
	}
	b.WriteString(d.Problem)
	return b.String()
}

// errorf adds an error about a message, or about the file if e has no ID.
func (c *catalog) errorf(e Message, format string, args ...any) {
	c.diagnostics = append(
		c.diagnostics, Diagnostic{File: c.name, Line: e.Line, Column: e.Column, Message: ID(e.ID),
			Problem: fmt.Sprintf(format, args...)})
}

// warnf adds a warning about something that may be intended.
func (c *catalog) warnf(e Message, format string, args ...any) {
	c.errorf(e, format, args...)
	c.diagnostics[len(c.diagnostics)-1].Warning = true
}

// loadError joins the diagnostics of catalogs.
func loadError(catalogs ...*catalog) error {
	var errs []error
	for _, c := range catalogs {
		for _, d := range c.diagnostics {
			errs = append(errs, d)
		}
	}
	return errors.Join(errs...)
}
