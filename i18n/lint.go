package i18n

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/i18n/rules"
	"github.com/babelftp/babelftp/locales"
)

// A Report is the result of Lint.
type Report struct {
	Diagnostics []Diagnostic // by file, and within it in the order of the lines
	Languages   []Coverage   // of the languages in the folder, in the order of their names
}

// Lint reads an operator's folder of catalogues as Load does, and reports all of
// its problems. It finds what Load would refuse, and what would disturb a reader
// or the next translator. The error says that there is no such folder, or no
// catalogue in it.
func Lint(dir fs.FS) (*Report, error) {
	l, err := newLoader()
	if err != nil {
		return nil, err
	}
	english, err := rules.Read(locales.FS(), language.English)
	if err != nil {
		return nil, err
	}
	catalogues, err := l.addAll(dir)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	for _, c := range catalogues {
		if c.tag != language.Und {
			l.review(c, dir, english)
			r.Languages = append(r.Languages, newCoverage(c.tag, len(l.missing(c.tag)), len(l.ids)))
		}
		slices.SortStableFunc(c.diagnostics, func(a, b Diagnostic) int { return a.Line - b.Line })
		r.Diagnostics = append(r.Diagnostics, c.diagnostics...)
	}
	return r, nil
}

// review adds the problems that Load does not refuse.
func (l *loader) review(c *catalogue, dir fs.FS, english *rules.Rules) {
	if missing := l.missing(c.tag); len(missing) > 0 {
		c.warnf(entry{}, "lacks %d of %d texts, which are shown in English: %s", len(missing), len(l.ids), l.list(missing))
	}
	own := l.reviewRules(c, dir, english)
	forms := rules.NumbersByForm(c.tag)
	for _, e := range c.entries {
		source, known := l.sources[e.ID]
		if !known {
			continue
		}
		c.reviewEntry(e, source, forms)
		for form, text := range e.Translation.all() {
			if text == "" { // compile reports an empty one
				continue
			}
			c.reviewText(e, source, form, text, own.MayBeEnglish(string(e.ID)))
			if own != nil {
				for _, problem := range own.Check(english, string(e.ID), source.entry.Message.Msg, text) {
					c.errorf(e, "%s", inForm(form, problem))
				}
			}
		}
	}
}

// reviewRules returns the rules in the folder of the catalogue. It returns nil if
// there are none, or if they are wrong.
func (l *loader) reviewRules(c *catalogue, dir fs.FS, english *rules.Rules) *rules.Rules {
	own, err := rules.Read(dir, c.tag)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	name := path.Join(c.tag.String(), rules.FileName)
	problem := func(text string) { c.diagnostics = append(c.diagnostics, Diagnostic{File: name, Problem: text}) }
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			problem(line)
		}
		return nil
	}
	for _, text := range own.Compare(english, func(id string) bool { _, ok := l.sources[ID(id)]; return ok }) {
		problem(text)
	}
	return own
}

// list writes messages in the order of the English catalogue.
func (l *loader) list(messages map[ID]bool) string {
	var names []string
	for _, id := range l.ids {
		if messages[id] {
			names = append(names, string(id))
		}
	}
	return strings.Join(names, ", ")
}

func (c *catalogue) reviewEntry(e entry, source source, forms map[string][]int) {
	if e.Fuzzy {
		c.warnf(e, `is marked "fuzzy"; compare it with the English text and remove the mark`)
	}
	if !e.Message.empty() && !reflect.DeepEqual(e.Message, source.entry.Message) {
		c.warnf(e, `translates %q, but the English text is now %q; compare the translation with it and copy it to "message"`,
			e.Message.Msg, source.entry.Message.Msg)
	}
	if e.Translation.empty() {
		if slices.Contains(locales.Tags(), c.tag.String()) {
			c.warnf(e, "has no translation, so the one that is built in stays; write one or remove the message")
		}
		return
	}
	if argument := source.entry.Translation.Select; argument != nil {
		c.reviewPlural(e, argument.Arg, forms)
	}
}

// reviewText checks one text. form is its plural form, or "". mayBeEnglish says that
// the English words are right.
func (c *catalogue) reviewText(e entry, source source, form, text string, mayBeEnglish bool) {
	if !norm.NFC.IsNormalString(text) {
		c.errorf(e, "%s", inForm(form, "the text is not in the Unicode form NFC; type its letters anew or let an editor convert it"))
	}
	if strings.Contains(text, "  ") {
		c.errorf(e, "%s", inForm(form, "there are two spaces in a row; leave one"))
	}
	for _, name := range protocolWords(source.entry.Message.Msg) {
		if !strings.Contains(text, name) {
			c.errorf(e, "%s", inForm(form, fmt.Sprintf("%s is missing; it is a word of the protocol and stays in every language", name)))
		}
	}
	if base(c.tag) != base(language.English) && !mayBeEnglish && source.entry.Translation.has(text) {
		c.warnf(e, "%s", inForm(form, "is the English text; translate it unless the words are the same"))
	}
}

// protocolWords finds the names of commands and other words of the protocol, which
// have no translation (RFC 2640, section 4.1).
func protocolWords(english string) []string {
	return regexp.MustCompile(`\b(?:TYPE I|PROT P|EPSV ALL|[A-Z][A-Z0-9-]{2,})\b`).FindAllString(english, -1)
}

// reviewPlural looks for plural forms that the language has and the text has not.
// numbers are some numbers by form.
func (c *catalogue) reviewPlural(e entry, arg string, numbers map[string][]int) {
	if e.Translation.Select == nil {
		if len(numbers) > 1 {
			c.warnf(e, "is one text for every number, but the language has the plural forms %s; give one text for each", rules.FormNames(numbers))
		}
		return
	}
	for _, form := range rules.PluralForms() {
		if len(numbers[form]) == 0 {
			continue
		}
		text, ok := e.Translation.Select.Cases[form]
		switch {
		case !ok && form != "other": // compile does not know the forms of a language
			c.errorf(e, "the plural form %q is missing, which the language has for %s; add it", form, rules.Examples(numbers[form]))
		case ok && len(numbers[form]) > 1 && form != "other" && !strings.Contains(text.Msg, "{"+arg+"}"):
			c.errorf(e, "plural form %q: the placeholder {%s} is missing, and the form stands for %s; show the number", form, arg, rules.Examples(numbers[form]))
		}
	}
}

// all yields each text with its plural form, which is "" where there are none.
func (t text) all() iter.Seq2[string, string] {
	return func(yield func(form, text string) bool) {
		if t.Select == nil {
			yield("", t.Msg)
			return
		}
		for _, form := range slices.Sorted(maps.Keys(t.Select.Cases)) {
			if !yield(form, t.Select.Cases[form].Msg) {
				return
			}
		}
	}
}

// has reports whether want is one of the texts.
func (t text) has(want string) bool {
	for _, text := range t.all() {
		if text == want {
			return true
		}
	}
	return false
}
