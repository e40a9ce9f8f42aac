package i18n

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/language"
)

// parameters are the names of the placeholders of a message, in the order of the arguments, as defined by the
// embedded English catalog.
type parameters []string

func newParameters(e Message) (parameters, error) {
	names := make(parameters, len(e.Placeholders))
	for i, p := range e.Placeholders {
		if p.ArgNum != i+1 || p.String != fmt.Sprintf("%%[%d]s", i+1) {
			return nil, fmt.Errorf("message %q: placeholder {%s} is not argument %d as a string", e.ID, p.ID, i+1)
		}
		names[i] = p.ID
	}
	return names, nil
}

// check returns the problems of a translation.
func (p parameters) check(id ID, tag language.Tag, t Text) (problems []string) {
	if t.Select != nil {
		return p.checkSelect(id, tag, *t.Select)
	}
	missing, problems := p.checkText(id, tag, t.Msg)
	for _, name := range missing {
		problems = append(problems, lacksPlaceholder(name))
	}
	return problems
}

// checkSelect checks a text with plural forms. All forms except "other" may omit the number.
func (p parameters) checkSelect(id ID, tag language.Tag, s Select) (problems []string) {
	switch {
	case s.Feature != "plural":
		return []string{fmt.Sprintf("a select by %q is not supported; use plural", s.Feature)}
	case !slices.Contains(p, s.Arg):
		return []string{fmt.Sprintf(
			"the select's argument %q is not a placeholder of this message; %s", s.Arg, p.advice())}
	}
	if s.Cases["other"] == "" {
		problems = append(problems, `the plural form "other" is missing; add it`)
	}
	for _, selector := range s.Cases.Selectors() {
		if !isNumber(selector) && !slices.Contains(Forms(), selector) {
			problems = append(
				problems, fmt.Sprintf(
					"%q is not a plural form; remove it, or write zero, one, two, few, many, other or a number such as =1",
					selector))
			continue
		}
		missing, wrong := p.checkText(id, tag, s.Cases[selector])
		for _, name := range missing {
			if name != s.Arg || selector == "other" {
				wrong = append(wrong, lacksPlaceholder(name))
			}
		}
		for _, problem := range wrong {
			problems = append(problems, inForm(selector, problem))
		}
	}
	return problems
}

// checkForms finds missing plural forms, and forms that apply to several numbers without showing the number.
// numbers has examples for each form of the language.
func checkForms(cases Cases, arg string, numbers map[string][]int) (problems []string) {
	for _, form := range Forms() {
		if !slices.ContainsFunc(numbers[form], func(n int) bool { return cases[fmt.Sprintf("=%d", n)] == "" }) {
			continue // the form has no numbers, or each number has its own text
		}
		text, ok := cases[form]
		switch {
		case form == "other": // required by checkSelect
		case !ok:
			problems = append(
				problems, fmt.Sprintf("the plural form %q is missing, which the language has for %s; add it",
					form, examples(numbers[form])))
		case len(numbers[form]) > 1 && !strings.Contains(text, "{"+arg+"}"):
			problems = append(
				problems, inForm(
					form, fmt.Sprintf("the placeholder {%s} is missing, and the form stands for %s; show the number",
						arg, examples(numbers[form]))))
		}
	}
	return problems
}

// inForm prefixes a problem with its plural form.
func inForm(form, problem string) string {
	if form == "" {
		return problem
	}
	return fmt.Sprintf("plural form %q: %s", form, problem)
}

func lacksPlaceholder(name string) string {
	return fmt.Sprintf("the placeholder {%s} is missing; put it where its value belongs", name)
}

// checkText checks the characters and placeholders of a text. It returns the missing placeholders separately.
func (p parameters) checkText(id ID, tag language.Tag, text string) (missing, problems []string) {
	problems = checkCharacters(id, tag, text)
	missing = slices.Clone(p)
	for rest := text; ; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			return missing, problems
		}
		name, after, closed := strings.Cut(rest[i+1:], "}")
		switch {
		case rest[i] == '}' || !closed:
			problems = append(problems, "a brace stands alone; braces only enclose the name of a placeholder")
			rest = rest[i+1:]
			continue
		case !slices.Contains(p, name):
			problems = append(problems, fmt.Sprintf("the placeholder {%s} is unknown; %s", name, p.advice()))
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
		rest = after
	}
}

func (p parameters) String() string {
	return "{" + strings.Join(p, "}, {") + "}"
}

func (p parameters) advice() string {
	if len(p) == 0 {
		return "this message has none"
	}
	return "use " + p.String()
}

// checkCharacters finds characters that would break a reply or change how it is displayed.
func checkCharacters(id ID, tag language.Tag, text string) (problems []string) {
	if text == "" {
		return []string{"the text is empty; write one"}
	}
	if id.InSyntax() && strings.ContainsFunc(text, unicode.IsSpace) {
		return []string{"a word in the syntax of a command contains a space; use a hyphen or one word"}
	}
	if units := len(strings.Fields(text)); id == SizeUnits && units != len("KMGTPE") {
		return []string{fmt.Sprintf("has %d units; write the six from KiB to EiB, with a space between them", units)}
	}
	if strings.TrimSpace(text) != text {
		problems = append(problems, "the text begins or ends with white space; remove it")
	}
	seen := make(map[rune]bool)
	for _, r := range text {
		if problem := checkCharacter(id, tag, r); problem != "" && !seen[r] {
			problems = append(problems, problem)
			seen[r] = true
		}
	}
	return problems
}

func checkCharacter(id ID, tag language.Tag, r rune) (problem string) {
	switch {
	case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
		return fmt.Sprintf("%U is a control character or ends a line; remove it", r)
	case unicode.Is(unicode.Bidi_Control, r):
		return fmt.Sprintf("%U is a bidirectional control; remove it, a terminal orders the text by itself", r)
	case r == '\ufeff', r == unicode.ReplacementChar:
		return fmt.Sprintf("%U is not a character; remove it", r)
	case tag == language.English && r > unicode.MaxASCII:
		return fmt.Sprintf(
			"%q is not ASCII, which RFC 2640, section 4.1 requires for the default language; replace it", r)
	case precedesField(id) && (unicode.IsDigit(r) || strings.ContainsRune("().。．（）", r)):
		return fmt.Sprintf("%q confuses clients that search for the number after this text; remove it", r)
	}
	return ""
}

// precedesField reports whether clients search for a number in parentheses after the text of this message
// (RFC 959, 227; RFC 2428, 229 and 522).
func precedesField(id ID) bool {
	return id == EnteringPassive || id == EnteringExtendedPassive || id == DataProtocolUnsupported
}
