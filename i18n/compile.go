package i18n

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message/catalog"
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

// compile checks a translation and makes the catalogue's message of it.
func (p parameters) compile(id ID, tag language.Tag, t text) (catalog.Message, error) {
	if t.Select != nil {
		return p.compilePlural(id, tag, *t.Select)
	}
	format, missing, err := p.format(id, tag, t.Msg)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the placeholder {%s} is missing; put it where its value belongs", missing[0])
	}
	return catalog.String(format), nil
}

// compilePlural does the same for a text with plural forms. Each but "other"
// may leave out the number itself, because it can stand for one number only.
func (p parameters) compilePlural(id ID, tag language.Tag, s selection) (catalog.Message, error) {
	if s.Feature != "plural" {
		return nil, fmt.Errorf("a select by %q is not supported; use plural", s.Feature)
	}
	arg := slices.Index(p, s.Arg)
	if arg < 0 {
		return nil, fmt.Errorf("the select's argument %q is not a placeholder of this message; use one of %s", s.Arg, p)
	}
	if _, ok := s.Cases["other"]; !ok {
		return nil, errors.New(`the plural form "other" is missing; add it`)
	}
	var cases []any
	// "other" is the last because it matches every number.
	for _, form := range []string{"zero", "one", "two", "few", "many", "other"} {
		t, ok := s.Cases[form]
		if !ok {
			continue
		}
		if t.Select != nil {
			return nil, fmt.Errorf("the plural form %q is a select itself; make it a plain text", form)
		}
		format, missing, err := p.format(id, tag, t.Msg)
		if err != nil {
			return nil, fmt.Errorf("plural form %q: %w", form, err)
		}
		for _, name := range missing {
			if name != s.Arg || form == "other" {
				return nil, fmt.Errorf("plural form %q: the placeholder {%s} is missing; put it where its value belongs", form, name)
			}
		}
		cases = append(cases, form, format)
	}
	if len(cases) != 2*len(s.Cases) {
		return nil, errors.New("there are plural forms other than zero, one, two, few, many and other; remove them")
	}
	return plural.Selectf(arg+1, "", cases...), nil
}

// format turns {Name} into the printer's %[n]s and tells which names did not
// occur.
func (p parameters) format(id ID, tag language.Tag, text string) (format string, missing []string, err error) {
	if err := checkCharacters(id, tag, text); err != nil {
		return "", nil, err
	}
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
			return "", nil, errors.New("a brace stands alone; braces only enclose the name of a placeholder")
		}
		name := rest[i+1 : i+length]
		n := slices.Index(p, name)
		if n < 0 {
			return "", nil, fmt.Errorf("the placeholder {%s} is unknown; %s", name, p.advice())
		}
		fmt.Fprintf(&b, "%%[%d]s", n+1)
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
		rest = rest[i+length+1:]
	}
	return b.String(), missing, nil
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

// checkCharacters refuses what would break a reply or make it look like
// something else.
func checkCharacters(id ID, tag language.Tag, text string) error {
	if text == "" {
		return errors.New("the text is empty; write one")
	}
	if strings.TrimSpace(text) != text {
		return errors.New("the text begins or ends with white space; remove it")
	}
	for _, r := range text {
		switch {
		case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
			return fmt.Errorf("%U is a control character or ends a line; remove it", r)
		case unicode.Is(unicode.Bidi_Control, r):
			return fmt.Errorf("%U is a bidirectional control; remove it, a terminal orders the text by itself", r)
		case r == '\ufeff', r == unicode.ReplacementChar:
			return fmt.Errorf("%U stands for no character; remove it", r)
		case tag == language.English && r > unicode.MaxASCII:
			return fmt.Errorf("%q is not ASCII, which the default language keeps to (RFC 2640, section 4.1); replace it", r)
		case precedesField(id) && (unicode.IsDigit(r) || strings.ContainsRune("().。．（）", r)):
			return fmt.Errorf("%q confuses clients that look for the number after this text; leave it out", r)
		}
	}
	return nil
}

// precedesField tells whether clients look for a number in parentheses after
// the text of this message (RFC 959, 227; RFC 2428, 229 and 522).
func precedesField(id ID) bool {
	return id == EnteringPassive || id == EnteringExtendedPassive || id == DataProtocolUnsupported
}
