package i18n

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
)

// formOf returns the plural form of a whole number by the rules of CLDR.
func formOf(tag language.Tag, n int) string {
	form := map[plural.Form]string{
		plural.Zero: "zero", plural.One: "one", plural.Two: "two", plural.Few: "few", plural.Many: "many",
		plural.Other: "other",
	}[plural.Cardinal.MatchPlural(tag, n, 0, 0, 0, 0)]
	if base, _ := tag.Base(); form == "many" && base.String() == "he" {
		return "other" // x/text has the rules of CLDR 32; CLDR 42 removed this form from Hebrew
	}
	return form
}

// numbersByForm returns example numbers for each plural form of a language, in ascending order. Every
// language has "other", possibly without any number.
func numbersByForm(tag language.Tag) map[string][]int {
	const (
		enough  = 200       // the forms repeat after each hundred
		million = 1_000_000 // has its own form in a few languages
	)
	numbers := map[string][]int{"other": nil}
	add := func(n int) {
		form := formOf(tag, n)
		numbers[form] = append(numbers[form], n)
	}
	for n := range enough {
		add(n)
	}
	add(million)
	return numbers
}

// formNames lists the forms that have numbers, and "other".
func formNames(numbers map[string][]int) string {
	names := slices.DeleteFunc(Forms(), func(form string) bool {
		_, ok := numbers[form]
		return !ok
	})
	return strings.Join(names, ", ")
}

// examples formats the first few numbers.
func examples(numbers []int) string {
	const few = 3
	text := strings.Trim(fmt.Sprint(numbers[:min(few, len(numbers))]), "[]")
	text = strings.ReplaceAll(text, " ", ", ")
	if len(numbers) > few {
		text += " and others"
	}
	return text
}
