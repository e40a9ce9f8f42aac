package rules

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// PluralForms returns the names of CLDR's plural forms, in the order in which
// catalogues show them.
func PluralForms() []string { return []string{"zero", "one", "two", "few", "many", "other"} }

// NumbersByForm returns some whole numbers for each plural form of a language, in
// ascending order. Every language has "other", which may have no number.
func NumbersByForm(tag language.Tag) map[string][]int {
	const (
		enough  = 200       // the forms begin again after each hundred
		million = 1_000_000 // but in a few languages this has one of its own
	)
	names := map[plural.Form]string{
		plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many", plural.Other: "other",
	}
	numbers := map[string][]int{"other": nil}
	add := func(n int) {
		form := names[plural.Cardinal.MatchPlural(tag, n, 0, 0, 0, 0)]
		numbers[form] = append(numbers[form], n)
	}
	for n := range enough {
		add(n)
	}
	add(million)
	return numbers
}

// FormNames lists the forms that have numbers, and "other".
func FormNames(numbers map[string][]int) string {
	names := slices.DeleteFunc(PluralForms(), func(form string) bool {
		_, ok := numbers[form]
		return !ok
	})
	return strings.Join(names, ", ")
}

// Examples writes the first few numbers.
func Examples(numbers []int) string {
	const few = 3
	text := strings.Trim(fmt.Sprint(numbers[:min(few, len(numbers))]), "[]")
	text = strings.ReplaceAll(text, " ", ", ")
	if len(numbers) > few {
		text += " and others"
	}
	return text
}
