package config

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
	Source       string // the file, or the environment variable; empty for a configuration that was not loaded
	Line, Column int    // from 1, in characters; 0 outside of a file
	Path         string // the keys that lead to the value, like tenants.acme.bucket; empty for the whole
	Message      string
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

// sort puts the problems into the order of the file, and those outside of it last.
func (ps Problems) sort() {
	slices.SortStableFunc(ps, func(a, b *Problem) int {
		return cmp.Or(
			-cmp.Compare(min(a.Line, 1), min(b.Line, 1)),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Path, b.Path),
		)
	})
}

// A place is where a value was given.
type place struct {
	source       string
	line, column int
	broken       bool // a problem with it was found already
}

// A keyPath is the keys that lead to a value.
type keyPath []string

// child is the path of what is under key. It shares no memory with its siblings.
func (p keyPath) child(key string) keyPath { return append(slices.Clip(p), key) }

// String is the keys with dots between, on one line.
func (p keyPath) String() string {
	keys := make([]string, len(p))
	for i, key := range p {
		if keys[i] = key; strings.ContainsFunc(key, unicode.IsControl) {
			keys[i] = strconv.Quote(key)
		}
	}
	return strings.Join(keys, ".")
}

// key is the path as the key of a map; a NUL cannot be in a key of YAML.
func (p keyPath) key() string { return strings.Join(p, "\x00") }

// reason is an error of the operating system without the name of the file, which the problem shows in its own way.
func reason(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
