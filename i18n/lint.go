package i18n

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"

	"github.com/babelftp/babelftp/locales"
)

// A Report is the result of Lint.
type Report struct {
	Diagnostics []Diagnostic // by file and line
	Languages   []Coverage   // coverage of the languages in the directory, sorted by name
}

// Lint reads an operator's directory of catalogs like Load and reports all problems: those that Load refuses,
// and others that would confuse a reader or the next translator. It returns an error if the directory cannot
// be read or has no catalogs.
func Lint(dir fs.FS) (*Report, error) {
	l, err := newLoader()
	if err != nil {
		return nil, err
	}
	english, err := ReadRules(locales.FS(), language.English)
	if err != nil {
		return nil, err
	}
	catalogs, err := l.addAll(dir)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	for _, c := range catalogs {
		if c.tag != language.Und {
			l.review(c, dir, english)
			r.Languages = append(r.Languages, newCoverage(c.tag, len(l.missing(c.tag)), len(l.ids)))
		}
		slices.SortStableFunc(c.diagnostics, func(a, b Diagnostic) int { return a.Line - b.Line })
		r.Diagnostics = append(r.Diagnostics, c.diagnostics...)
	}
	return r, nil
}

// review adds the problems that Load accepts.
func (l *loader) review(c *catalog, dir fs.FS, english *Rules) {
	if missing := l.missing(c.tag); len(missing) > 0 {
		c.warnf(
			Message{}, "lacks %d of %d texts, which are shown in English: %s", len(missing), len(l.ids),
			l.list(missing))
	}
	own := l.reviewRules(c, dir, english)
	l.reviewButtons(c)
	forms := numbersByForm(c.tag)
	for _, e := range c.file.Messages {
		source, known := l.sources[ID(e.ID)]
		if !known {
			continue
		}
		c.reviewEntry(e, source, forms)
		for form, text := range e.Translation.All() {
			c.reviewText(e, source, form, text, own.MayBeEnglish(e.ID))
			if own != nil {
				for _, problem := range own.Check(english, e.ID, source.entry.Message.Msg, text) {
					c.errorf(e, "%s", inForm(form, problem))
				}
			}
		}
	}
}

// reviewButtons finds buttons of the page whose text starts like the cancel button next to them.
func (l *loader) reviewButtons(c *catalog) {
	text := func(id ID) string {
		if t := l.texts[c.tag]; t.has(id) {
			return strings.ToLower(t()[id].Msg)
		}
		return ""
	}
	cancel := text("page-cancel")
	for _, id := range []ID{"page-unban", "page-delete", "page-disconnect"} {
		if cancel != "" && strings.HasPrefix(text(id), cancel) {
			c.errorf(Message{ID: string(id), Line: c.lineOf(id)},
				`starts like "page-cancel", the button next to it; use another verb`)
		}
	}
}

// reviewRules returns the rules in the directory of the catalog, or nil if they are missing or invalid.
func (l *loader) reviewRules(c *catalog, dir fs.FS, english *Rules) *Rules {
	own, err := ReadRules(dir, c.tag)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	name := path.Join(c.tag.String(), rulesFileName)
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

// list joins message IDs in the order of the English catalog.
func (l *loader) list(messages map[ID]bool) string {
	var names []string
	for _, id := range l.ids {
		if messages[id] {
			names = append(names, string(id))
		}
	}
	return strings.Join(names, ", ")
}

func (c *catalog) reviewEntry(e Message, source source, forms map[string][]int) {
	if e.Fuzzy {
		c.warnf(e, `is marked "fuzzy"; compare it with the English text and remove the mark`)
	}
	if !e.Message.IsZero() && !reflect.DeepEqual(e.Message, source.entry.Message) {
		c.warnf(
			e,
			`translates %q, but the English text is now %q; compare the translation with it and remove "message"`,
			e.Message.Msg, source.entry.Message.Msg)
	}
	if e.Translation.IsZero() {
		if slices.Contains(locales.Tags(), c.tag.String()) {
			c.warnf(e, "has no translation, so the built-in one is used; write one or remove the message")
		}
		return
	}
	if argument := source.entry.Translation.Select; argument != nil {
		c.reviewPlural(e, argument.Arg, forms)
	}
}

// reviewText checks one text. form is its plural form, or empty. mayBeEnglish allows a text that equals the
// English one.
func (c *catalog) reviewText(e Message, source source, form, text string, mayBeEnglish bool) {
	if !norm.NFC.IsNormalString(text) {
		c.errorf(
			e, "%s", inForm(
				form, "the text is not in the Unicode form NFC; type its letters anew or let an editor convert it"))
	}
	if strings.Contains(text, "  ") {
		c.errorf(e, "%s", inForm(form, "there are two spaces in a row; leave one"))
	}
	for _, problem := range presentationProblems(ID(e.ID), form, text) {
		c.errorf(e, "%s", inForm(form, problem))
	}
	for _, name := range protocolWords(source.entry.Message.Msg) {
		if !strings.Contains(text, name) {
			c.errorf(
				e, "%s", inForm(
					form, fmt.Sprintf("%s is missing; it is a word of the protocol and stays in every language", name)))
		}
	}
	if base(c.tag) != base(language.English) && !mayBeEnglish && source.entry.Translation.Has(text) {
		c.warnf(e, "%s", inForm(form, "is the English text; translate it unless the words are the same"))
	}
}

var (
	escape   = regexp.MustCompile(`\\[nrtuxU]|&(?:#\w+|[a-z]+);|%[0-9A-F]{2}`)
	option   = regexp.MustCompile(`(?:^|[\s(])(--?[a-z][a-z-]*)`)
	unit     = regexp.MustCompile(`\{\w+\}[ \x{A0}]?(?:[kKMGTPE]i?B|[Bs]|bytes?|seconds?)(?:[^\pL]|$)`)
	sentence = regexp.MustCompile(`[;；؛·]|[.!?؟](?: |$)|[。।۔։]`)
)

// presentationProblems finds text that programs display differently from what its author sees: escapes,
// options that right-to-left text reorders, units that belong to the values, and a reason that is cut off on
// 80 columns. The reason is the first clause of a reply.
func presentationProblems(id ID, form, text string) (problems []string) {
	if found := escape.FindString(text); found != "" {
		problems = append(problems, fmt.Sprintf("%q is an escape, which readers would see; write the character", found))
	}
	if found := option.FindStringSubmatch(text); found != nil {
		problems = append(problems, fmt.Sprintf("%q is an option; put it into a placeholder, which is isolated in a text "+
			"from right to left", found[1]))
	}
	if found := unit.FindString(text); found != "" && form == "" && id != SizeBytes {
		problems = append(problems, fmt.Sprintf("%q has a unit; let the value have it, or use plural forms", found))
	}
	const columns = 80
	reason := placeholder.ReplaceAllString(text, "")
	if end := sentence.FindStringIndex(reason); end != nil {
		reason = strings.TrimRightFunc(reason[:end[0]], unicode.IsSpace)
	}
	if n := displayWidth(reason); id.InReply() && n > columns {
		problems = append(problems, fmt.Sprintf("the first clause is %d columns wide without its placeholders, and displays "+
			"of %d columns cut it off; make it shorter", n, columns))
	}
	return problems
}

// displayWidth returns the number of terminal columns of a text.
func displayWidth(text string) (columns int) {
	for _, r := range text {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
			columns += 2
		default:
			columns++
		}
	}
	return columns
}

// protocolWords finds the names of commands and other words of the protocol, which are never translated (RFC
// 2640, section 4.1).
func protocolWords(english string) []string {
	return regexp.MustCompile(`\b(?:TYPE I|PROT P|EPSV ALL|[A-Z][A-Z0-9-]{2,})\b`).FindAllString(english, -1)
}

// reviewPlural finds missing plural forms. numbers has examples for each form of the language.
func (c *catalog) reviewPlural(e Message, arg string, numbers map[string][]int) {
	if e.Translation.Select == nil {
		if len(numbers) > 1 {
			c.warnf(
				e, "has one text for all numbers, but the language has the plural forms %s; write one text for each",
				formNames(numbers))
		}
		return
	}
	for _, problem := range checkForms(e.Translation.Select.Cases, arg, numbers) {
		c.errorf(e, "%s", problem)
	}
}
