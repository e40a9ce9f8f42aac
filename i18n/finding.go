package i18n

import (
	"errors"
	"fmt"
	"strings"
)

// A Finding is something wrong with a catalogue, and what to do about it.
type Finding struct {
	File    string // <tag>/messages.gotext.json
	Line    int    // of the file, where the message begins; 0 when it is about the whole file
	Message ID     // "" when it is about the whole file
	Problem string // what is wrong and what to do, without a full stop
	Warning bool   // it may be meant like that
}

// Error returns the finding in one line, as editors and terminals find their
// way by.
func (f Finding) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	b.WriteString(": ")
	if f.Warning {
		b.WriteString("warning: ")
	}
	if f.Message != "" {
		fmt.Fprintf(&b, "message %q: ", f.Message)
	}
	b.WriteString(f.Problem)
	return b.String()
}

// wrong notes what has to be corrected in a message, or in the file when e has
// no identifier.
func (c *catalogue) wrong(e entry, format string, args ...any) {
	c.findings = append(c.findings, Finding{File: c.name, Line: e.line, Message: e.ID, Problem: fmt.Sprintf(format, args...)})
}

// doubtful notes what may be meant like that.
func (c *catalogue) doubtful(e entry, format string, args ...any) {
	c.wrong(e, format, args...)
	c.findings[len(c.findings)-1].Warning = true
}

// loadError joins what keeps catalogues from being loaded.
func loadError(catalogues ...*catalogue) error {
	var errs []error
	for _, c := range catalogues {
		for _, f := range c.findings {
			errs = append(errs, f)
		}
	}
	return errors.Join(errs...)
}
