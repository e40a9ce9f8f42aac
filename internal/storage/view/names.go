package view

import (
	"path"

	"golang.org/x/text/unicode/norm"
)

// Names are names of files, by patterns for [path.Match] that count in each directory. The zero value has none.
type Names []string

// NewNames makes Names of patterns, which must be good.
func NewNames(patterns []string) Names {
	var names Names
	for _, pattern := range patterns {
		names = append(names, norm.NFC.String(pattern))
	}
	return names
}

// match reports whether the last segment of a canonical pathname is among the names.
func (n Names) match(canonical string) bool {
	name := path.Base(canonical)
	for _, pattern := range n {
		if matched, _ := path.Match(pattern, name); matched { // never malformed
			return true
		}
	}
	return false
}
