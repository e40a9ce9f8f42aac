package i18n

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/text/language"
)

// A Diagnostic says what is wrong with a catalogue or with a text of a tenant, and what to
// do about it.
type Diagnostic struct {
	File     string       // <tag>/messages.gotext.json, or ""
	Line     int          // of the message, from 1, or 0
	Column   int          // in characters
	Message  ID           // "" for the whole file
	Language language.Tag // of a tenant's text
	Problem  string       // without a full stop
	Warning  bool         // the author may have meant it
}

// Error returns the diagnostic in one line, file:line: problem, which editors
// can follow.
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

// errorf adds an error about a message, or about the file when e has no identifier.
func (c *catalogue) errorf(e Message, format string, args ...any) {
	c.diagnostics = append(
		c.diagnostics, Diagnostic{File: c.name, Line: e.Line, Column: e.Column, Message: ID(e.ID),
			Problem: fmt.Sprintf(format, args...)})
}

// warnf adds a warning about something that may be intended.
func (c *catalogue) warnf(e Message, format string, args ...any) {
	c.errorf(e, format, args...)
	c.diagnostics[len(c.diagnostics)-1].Warning = true
}

// loadError joins the diagnostics of catalogues.
func loadError(catalogues ...*catalogue) error {
	var errs []error
	for _, c := range catalogues {
		for _, d := range c.diagnostics {
			errs = append(errs, d)
		}
	}
	return errors.Join(errs...)
}
