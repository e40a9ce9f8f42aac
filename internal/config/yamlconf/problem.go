package yamlconf

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A Problem is an error in a configuration, with what to do about it.
type Problem struct {
	// Source is the file or the environment variable. It is empty if the configuration was not loaded.
	Source string

	// Line and Column are the position in the file, starting at 1, in characters. They are 0 if the source is not a
	// file.
	Line, Column int

	// Path has the keys that lead to the value, such as tenants.acme.bucket. It is empty for the whole file.
	Path string

	Message string
}

// Error returns "file:line:column: path: message".
func (p *Problem) Error() string {
	var b strings.Builder
	if p.Source != "" {
		b.WriteString(p.Source)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are all errors in a configuration.
type Problems []*Problem

// Error returns a line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort sorts the problems by file and position. Problems outside of files come last.
func (ps Problems) Sort() {
	slices.SortStableFunc(ps, func(a, b *Problem) int {
		return cmp.Or(
			-cmp.Compare(min(a.Line, 1), min(b.Line, 1)),
			min(a.Line, 1)*strings.Compare(a.Source, b.Source),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Message, b.Message),
		)
	})
}

// Positions records where each value is set. The zero value is for configurations that were not loaded.
type Positions map[string]position

// A position is the place at which a value is set.
type position struct {
	source       string
	line, column int
	broken       bool      // a problem with the value was reported
	defaults     *defaults // the defaults that contain the value, or nil
}

// String returns the source and the line.
func (at position) String() string {
	if at.line == 0 {
		return at.source
	}
	return fmt.Sprintf("%s:%d", at.source, at.line)
}

func (at position) problem(p Path, message string) *Problem {
	if of := at.defaults; of != nil && len(p) > len(of.entries) {
		p = slices.Concat(of.path, p[len(of.entries)+1:])
	}
	return &Problem{Source: at.source, Line: at.line, Column: at.column, Path: p.String(), Message: message}
}

// Problem returns a problem with the value at p. It returns nil if a problem with the value or one of its parents was
// already reported. If the value is not set, the problem has the position of its parent.
func (ps Positions) Problem(p Path, message string) *Problem {
	var at position
	for i := range len(p) + 1 {
		if known, ok := ps[p[:i].key()]; ok {
			at = known
		}
		if at.broken {
			return nil
		}
	}
	return at.problem(p, message)
}

// IsSet reports whether the value at p is set.
func (ps Positions) IsSet(p Path) bool {
	_, given := ps[p.key()]
	return given
}

// Source returns the file that sets the value at p and the line, or "" and 0 if the value is not set.
func (ps Positions) Source(p Path) (file string, line int) {
	at := ps[p.key()]
	return at.source, at.line
}

// Broken reports whether a problem with the value at p was reported.
func (ps Positions) Broken(p Path) bool { return ps[p.key()].broken }

// A Path has the keys that lead to a value.
type Path []string

// Child returns the path of a key below p. It does not share memory with p.
func (p Path) Child(key string) Path { return append(slices.Clip(p), key) }

// String returns the keys joined by dots, on one line.
func (p Path) String() string {
	keys := make([]string, len(p))
	for i, key := range p {
		if keys[i] = key; strings.ContainsFunc(key, unicode.IsControl) {
			keys[i] = strconv.Quote(key)
		}
	}
	return strings.Join(keys, ".")
}

// key returns the path as a map key. Known keys do not contain NUL.
func (p Path) key() string { return strings.Join(p, "\x00") }

// WithoutPath removes the file name from an error of the operating system, because problems already contain it.
func WithoutPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
