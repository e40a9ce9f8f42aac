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

// A Problem is one thing that is wrong with a configuration, and what to do about it.
type Problem struct {
	// Source is the file or the environment variable. It is empty for a configuration that was not loaded.
	Source string

	// Line and Column are where the problem is in the file: from 1, in characters. They are 0 outside of a file.
	Line, Column int

	// Path is the keys that lead to the value, like tenants.acme.bucket. It is empty for the whole.
	Path string

	Message string
}

// Error is "file:line:column: path: message".
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

// Problems is everything that is wrong with a configuration.
type Problems []*Problem

// Error is one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort puts the problems into the order of the files, and those outside of files last.
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

// Positions says where each value was given. The zero value is that of a configuration that was not loaded.
type Positions map[string]position

// A position is where a value was given.
type position struct {
	source       string
	line, column int
	broken       bool      // a problem with it was found already
	defaults     *defaults // that have the value, nil for one of the entry itself
}

// String is the source with the line.
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

// Problem is a problem with the value that p leads to, or nil if one was found already with it or with what holds it.
// Where the value is not given, the problem is with what should hold it.
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

// Given reports whether there is a value that p leads to.
func (ps Positions) Given(p Path) bool {
	_, given := ps[p.key()]
	return given
}

// Broken reports whether a problem was found with the value that p leads to.
func (ps Positions) Broken(p Path) bool { return ps[p.key()].broken }

// A Path is the keys that lead to a value.
type Path []string

// Child is the path of what is under key. It shares no memory with its siblings.
func (p Path) Child(key string) Path { return append(slices.Clip(p), key) }

// String is the keys with dots between, on one line.
func (p Path) String() string {
	keys := make([]string, len(p))
	for i, key := range p {
		if keys[i] = key; strings.ContainsFunc(key, unicode.IsControl) {
			keys[i] = strconv.Quote(key)
		}
	}
	return strings.Join(keys, ".")
}

// key is the path as the key of a map. No known key has a NUL.
func (p Path) key() string { return strings.Join(p, "\x00") }

// WithoutPath is an error of the operating system without the name of the file, which a problem shows in its own way.
func WithoutPath(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
