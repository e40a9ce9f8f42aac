package yamlconf

import (
	"fmt"
	"slices"
	"strings"
)

// An Enum is a string type with a fixed set of values.
type Enum interface {
	// Values returns the values in the order of messages and the reference.
	Values() []string
}

// EnumValues converts the values of an [Enum] to strings.
func EnumValues[E ~string](values ...E) []string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return words
}

// OneOf joins words for a message: "a, b or c".
func OneOf(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// checkEnum returns an error if text is not a value of the Enum.
func checkEnum(e Enum, text string) error {
	if words := e.Values(); !slices.Contains(words, text) {
		return fmt.Errorf("unknown value %q: write %s", text, OneOf(words))
	}
	return nil
}
