package i18n

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message/catalog"

	"github.com/babelftp/babelftp/i18n/rules"
)

// parameters are the names of a message's placeholders, in the order of the
// arguments. The English catalogue that is built in defines them.
type parameters []string

func newParameters(e entry) (parameters, error) {
	names := make(parameters, len(e.Placeholders))
	for i, p := range e.Placeholders {
		if p.ArgNum != i+1 || p.String != fmt.Sprintf("%%[%d]s", i+1) {
			return nil, fmt.Errorf("message %q: placeholder {%s} is not argument %d as a string", e.ID, p.ID, i+1)
		}
		names[i] = p.ID
	}
	return names, nil
}

// compile makes the catalogue's message of a translation. The message is valid
// only if there are no problems.
func (p parameters) compile(id ID, tag language.Tag, t text) (m catalog.Message, problems []string) {
	if t.Select != nil {
		return p.compilePlural(id, tag, *t.Select)
	}
	format, problems := p.compileString(id, tag, t.Msg)
	return catalog.String(format), problems
}

// compileString makes a format for package fmt of a text without plural forms.
func (p parameters) compileString(id ID, tag language.Tag, text string) (format string, problems []string) {
	format, missing, problems := p.format(id, tag, text)
	for _, name := range missing {
		problems = append(problems, lacksPlaceholder(name))
	}
	return format, problems
}

// compilePlural compiles a text with plural forms. Each form but "other" may
// leave out the number.
func (p parameters) compilePlural(id ID, tag language.Tag, s selection) (m catalog.Message, problems []string) {
	arg := slices.Index(p, s.Arg)
	switch {
	case s.Feature != "plural":
		return nil, []string{fmt.Sprintf("a select by %q is not supported; use plural", s.Feature)}
	case arg < 0:
		return nil, []string{fmt.Sprintf("the select's argument %q is not a placeholder of this message; %s", s.Arg, p.advice())}
	}
	if _, ok := s.Cases["other"]; !ok {
		problems = append(problems, `the plural form "other" is missing; add it`)
	}
	var cases []any
	// "other" is the last because it matches every number.
	for _, form := range rules.PluralForms() {
		t, ok := s.Cases[form]
		if !ok {
			continue
		}
		format, wrong := p.compileForm(id, tag, s.Arg, form, t)
		for _, problem := range wrong {
			problems = append(problems, inForm(form, problem))
		}
		cases = append(cases, form, format)
	}
	if len(cases) != 2*len(s.Cases) {
		problems = append(problems, "there are plural forms other than zero, one, two, few, many and other; remove them")
	}
	return plural.Selectf(arg+1, "", cases...), problems
}

// compileForm compiles one plural form of the argument called arg.
func (p parameters) compileForm(id ID, tag language.Tag, arg, form string, t text) (format string, problems []string) {
	if t.Select != nil {
		return "", []string{"is a select itself; make it a plain text"}
	}
	format, missing, problems := p.format(id, tag, t.Msg)
	for _, name := range missing {
		if name != arg || form == "other" {
			problems = append(problems, lacksPlaceholder(name))
		}
	}
	return format, problems
}

// inForm adds the plural form to a problem.
func inForm(form, problem string) string {
	if form == "" {
		return problem
	}
	return fmt.Sprintf("plural form %q: %s", form, problem)
}

func lacksPlaceholder(name string) string {
	return fmt.Sprintf("the placeholder {%s} is missing; put it where its value belongs", name)
}

// format turns {Name} into the printer's %[n]s. missing are the names that do not
// occur.
func (p parameters) format(id ID, tag language.Tag, text string) (format string, missing, problems []string) {
	problems = checkCharacters(id, tag, text)
	missing = slices.Clone(p)
	var b strings.Builder
	for rest := text; rest != ""; {
		i := strings.IndexAny(rest, "{}%")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		if rest[i] == '%' {
			b.WriteString("%%")
			rest = rest[i+1:]
			continue
		}
		length := strings.IndexByte(rest[i:], '}')
		if rest[i] == '}' || length < 0 {
			problems = append(problems, "a brace stands alone; braces only enclose the name of a placeholder")
			rest = rest[i+1:]
			continue
		}
		name := rest[i+1 : i+length]
		rest = rest[i+length+1:]
		n := slices.Index(p, name)
		if n < 0 {
			problems = append(problems, fmt.Sprintf("the placeholder {%s} is unknown; %s", name, p.advice()))
			continue
		}
		fmt.Fprintf(&b, "%%[%d]s", n+1)
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
	}
	return b.String(), missing, problems
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

// checkCharacters finds characters that would break a reply or disguise it.
func checkCharacters(id ID, tag language.Tag, text string) (problems []string) {
	if text == "" {
		return []string{"the text is empty; write one"}
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
		return fmt.Sprintf("%U stands for no character; remove it", r)
	case tag == language.English && r > unicode.MaxASCII:
		return fmt.Sprintf("%q is not ASCII, which the default language keeps to (RFC 2640, section 4.1); replace it", r)
	case precedesField(id) && (unicode.IsDigit(r) || strings.ContainsRune("().。．（）", r)):
		return fmt.Sprintf("%q confuses clients that look for the number after this text; leave it out", r)
	}
	return ""
}

// precedesField reports whether clients look for a number in parentheses after
// the text of this message (RFC 959, 227; RFC 2428, 229 and 522).
func precedesField(id ID) bool {
	return id == EnteringPassive || id == EnteringExtendedPassive || id == DataProtocolUnsupported
}
