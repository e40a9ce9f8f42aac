package view

import (
	"path"

	"golang.org/x/text/unicode/norm"
)

// Names is a list of patterns for file names in any directory; see [path.Match]. The zero value matches nothing.
type Names []string

// NewNames returns Names with these patterns, which must be valid.
func NewNames(patterns []string) Names {
	var names Names
	for _, pattern := range patterns {
		names = append(names, norm.NFC.String(pattern))
	}
	return names
}

// match reports whether the last segment of a canonical pathname matches a pattern.
func (n Names) match(canonical string) bool {
	name := path.Base(canonical)
	for _, pattern := range n {
		if matched, _ := path.Match(pattern, name); matched { // patterns are valid
			return true
		}
	}
	return false
}
