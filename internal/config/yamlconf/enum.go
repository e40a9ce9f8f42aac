package yamlconf

import (
	"fmt"
	"slices"
	"strings"
)

// An Enum is a string type whose values are few words.
type Enum interface {
	// Values are the values, in the order in which messages and references show them.
	Values() []string
}

// EnumValues are values of an [Enum].
func EnumValues[E ~string](values ...E) []string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return words
}

// OneOf is words as a message offers them: "a, b or c".
func OneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// checkEnum returns an error for a text that is none of the words of an Enum.
func checkEnum(e Enum, text string) error {
	if words := e.Values(); !slices.Contains(words, text) {
		return fmt.Errorf("%q is not known: write %s", text, OneOf(words))
	}
	return nil
}
