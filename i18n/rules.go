package i18n

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/language"
)

// rulesFileName is the name of the file in the folder of a language.
const rulesFileName = "language.yaml"

// Rules are the rules of one language: the words of its glossary, its punctuation and its script. A file next to the
// catalogue holds them, so that a translator can change them without Go. The glossary of English says which terms there
// are, and how to find them in an English text. That of another language says how the translation of such a text names
// them.
type Rules struct {
	languageFile
	latin    bool // the language is written in Latin letters
	english  bool // or a variant of it
	terms    map[string]expressions
	patterns []*regexp.Regexp // by typography rule
}

// languageFile is what the file holds.
type languageFile struct {
	Reviewed      string            `yaml:"reviewed"`        // who has read all texts, or how they were read
	ReviewedOn    string            `yaml:"reviewed_on"`     // the day of it, as 2006-01-02
	Ends          map[string]string `yaml:"ends"`            // by the English end of a text: "." ":" or "?"
	Names         []string          `yaml:"names"`           // words in Latin letters that stay in every script
	SameAsEnglish []string          `yaml:"same_as_english"` // messages whose text may be the English one
	Cognates      []string          `yaml:"cognates"`        // small words of four letters and more that English writes alike
	Glossary      map[string]term   `yaml:"glossary"`
	Typography    []typography      `yaml:"typography"`
}

// A term is what the language calls a thing. The forms are regular expressions that
// do not distinguish capitals: a stem, to allow inflection.
// The messages of Except and Unlike of English hold for each language.
type term struct {
	Say    []string `yaml:"say"`    // one of these is in a text whose English has the term.
	Not    []string `yaml:"not"`    // none of these is in any text.
	Except []string `yaml:"except"` // messages that need not say it.
	Unlike []string `yaml:"unlike"` // messages about another thing, which must not say it.
}

type expressions struct{ say, not *regexp.Regexp }

// A typography rule says in Rule what texts follow. Wrong is a regular expression that
// finds what breaks it.
type typography struct {
	Rule  string `yaml:"rule"`
	Wrong string `yaml:"wrong"`
}

// ReadRules reads <tag>/language.yaml, as parseRules does. The error is fs.ErrNotExist if there is
// no such file.
func ReadRules(dir fs.FS, tag language.Tag) (*Rules, error) {
	data, err := fs.ReadFile(dir, path.Join(tag.String(), rulesFileName))
	if err != nil {
		return nil, err
	}
	return parseRules(data, tag)
}

// parseRules reads the file of a language. The error joins its problems, each with what to
// do.
func parseRules(data []byte, tag language.Tag) (*Rules, error) {
	base, _ := tag.Base()
	script, _ := tag.Script()
	r := &Rules{latin: script.String() == "Latn", english: base.String() == "en", terms: make(map[string]expressions)}
	if err := yaml.Load(data, &r.languageFile, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("is not such a file: %w", err)
	}
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Reviewed == "" {
		problem(`"reviewed" is missing; write who has read the texts, or how they were read`)
	}
	if _, err := time.Parse(time.DateOnly, r.ReviewedOn); err != nil {
		problem(`"reviewed_on" is %q; write the day of the review, such as 2026-11-23`, r.ReviewedOn)
	}
	for end := range r.Ends {
		if !slices.Contains(ends(), end) {
			problem(`"ends" has %q; write only %s there`, end, strings.Join(ends(), " "))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.Glossary)) {
		t := r.Glossary[id]
		say, err := compile(t.Say)
		not, notErr := compile(t.Not)
		if err := errors.Join(err, notErr); err != nil {
			problem("term %q: %w; correct the form", id, err)
		} else if say == nil {
			problem(`term %q: "say" is missing; write what the language calls it`, id)
		}
		r.terms[id] = expressions{say, not}
	}
	for _, t := range r.Typography {
		pattern, err := expression(t.Wrong)
		if err != nil || t.Wrong == "" || t.Rule == "" {
			problem(`typography rule %q: "wrong" is not a regular expression, or "rule" is missing: %v`, t.Rule, err)
			continue
		}
		r.patterns = append(r.patterns, pattern)
	}
	return r, errors.Join(errs...)
}

// Review tells who has read all texts, or how they were read, and when. It is empty where the rules are missing or
// wrong.
func Review(dir fs.FS, tag language.Tag) string {
	r, err := ReadRules(dir, tag)
	if err != nil {
		return ""
	}
	return r.Reviewed + ", " + r.ReviewedOn
}

// compile makes one regular expression of the forms of a term, nil without forms.
func compile(forms []string) (*regexp.Regexp, error) {
	if len(forms) == 0 {
		return nil, nil
	}
	return expression("(?i)(?:" + strings.Join(forms, "|") + ")")
}

// expression compiles a regular expression in which \b is the edge of a word in every script, where that of regexp
// knows no letters but those of ASCII.
func expression(text string) (*regexp.Regexp, error) {
	return regexp.Compile(strings.ReplaceAll(text, `\b`, `(?:^|$|[^\p{L}\p{M}\p{N}_])`))
}

// ends returns the ends of English texts that each language has in its own way.
func ends() []string { return []string{".", ":", "?"} }

// Compare returns what the rules lack or have too much, next to those of English:
// terms, and messages that known does not know.
func (r *Rules) Compare(english *Rules, known func(message string) bool) (problems []string) {
	messages := slices.Clone(r.SameAsEnglish)
	for _, id := range slices.Sorted(maps.Keys(r.Glossary)) {
		if _, ok := english.Glossary[id]; !ok {
			problems = append(
				problems, fmt.Sprintf(
					"term %q: no such term; the terms are %s", id,
					strings.Join(slices.Sorted(maps.Keys(english.Glossary)), ", ")))
		}
		messages = append(messages, slices.Concat(r.Glossary[id].Except, r.Glossary[id].Unlike)...)
	}
	for _, id := range slices.Sorted(maps.Keys(english.Glossary)) {
		if _, ok := r.Glossary[id]; !ok {
			problems = append(problems, fmt.Sprintf("term %q: is missing; add what the language calls it", id))
		}
	}
	for _, id := range messages {
		if !known(id) {
			problems = append(problems, fmt.Sprintf("message %q: no such message; remove it", id))
		}
	}
	return problems
}

// MayBeEnglish reports whether the text of a message may be the English one.
func (r *Rules) MayBeEnglish(message string) bool {
	return ID(message).isSize() || r != nil && slices.Contains(r.SameAsEnglish, message)
}

var (
	placeholder = regexp.MustCompile(`\{\w+\}`)
	command     = regexp.MustCompile(`\b[A-Z][A-Z0-9-]{2,}\b`)
	latinWord   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`)
	latinWords  = regexp.MustCompile(`\p{Latin}+`)
)

// Check returns what is wrong with a translation of an English text. Placeholders and
// names of commands are no words of a language.
func (r *Rules) Check(english *Rules, message, source, text string) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if end := r.wrongEnd(source, text); end != "" {
		problem("%s", end)
	}
	for i, pattern := range r.patterns {
		if found := pattern.FindString(text); found != "" {
			problem("breaks the rule %q: %q", r.Typography[i].Rule, found)
		}
	}
	words := command.ReplaceAllString(placeholder.ReplaceAllString(text, ""), "")
	source = command.ReplaceAllString(placeholder.ReplaceAllString(source, ""), "")
	for _, id := range slices.Sorted(maps.Keys(r.Glossary)) {
		term, form := r.Glossary[id], r.terms[id]
		if form.not != nil {
			if found := strings.TrimSpace(form.not.FindString(words)); found != "" {
				problem(
					"says %q, which the glossary excludes for the term %q; say %s", found, id,
					strings.Join(term.Say, " or "))
			}
		}
		if slices.Contains(term.Unlike, message) || slices.Contains(english.Glossary[id].Unlike, message) {
			if found := strings.TrimSpace(form.say.FindString(words)); found != "" {
				problem("says %q, which is the term %q, and means another thing; use another word", found, id)
			}
		}
		if !english.has(id, message, source) || slices.Contains(term.Except, message) {
			continue
		}
		if !form.say.MatchString(words) {
			problem("does not name the term %q as the glossary does; say %s", id, strings.Join(term.Say, " or "))
		}
	}
	switch {
	case ID(message).isSize():
	case !r.latin:
		problems = append(problems, r.wrongScript(english, text)...)
	case !r.english && !r.MayBeEnglish(message) && ID(message).InReply() && !ID(message).InSyntax():
		// headings and arguments are words of many languages
		for _, word := range r.LeftOver(source, words) {
			problem(`has the English word %q; translate it, or add it to "cognates"`, word)
		}
	}
	return problems
}

// LeftOver returns the words of a text that are in its English source too, but for the
// cognates. It is for languages in Latin letters. Short words are no sign of English.
func (r *Rules) LeftOver(source, text string) (words []string) {
	const short = 3
	english := latinWords.FindAllString(strings.ToLower(source), -1)
	for _, word := range latinWords.FindAllString(text, -1) {
		small := strings.ToLower(word)
		if len(small) > short && slices.Contains(english, small) && !slices.Contains(r.Cognates, small) {
			words = append(words, word)
		}
	}
	return words
}

// has reports whether a text of English has a term that its translations must name.
func (r *Rules) has(id, message, text string) bool {
	say := r.terms[id].say
	return say != nil && say.MatchString(text) && !slices.Contains(r.Glossary[id].Except, message)
}

// wrongEnd compares the punctuation at the end of a text with that of its English.
func (r *Rules) wrongEnd(source, text string) string {
	ending := func(end string) string {
		if own, ok := r.Ends[end]; ok {
			return own
		}
		return end
	}
	for _, end := range ends() {
		if want := ending(end); strings.HasSuffix(source, end) && want != "" {
			if !strings.HasSuffix(text, want) {
				return fmt.Sprintf("does not end in %q as the English text ends in %q; correct the end", want, end)
			}
			return ""
		}
	}
	for _, end := range ends() {
		if own := ending(end); strings.HasSuffix(text, end) || own != "" && strings.HasSuffix(text, own) {
			return "ends in punctuation, which the text does not have in this language; leave it out"
		}
	}
	return ""
}

// wrongScript finds English that is left in a language of another script. Commands
// and abbreviations stay, in capitals. A text without letters, such as {Part} / {Whole}, is one of every script.
func (r *Rules) wrongScript(english *Rules, text string) (problems []string) {
	text = placeholder.ReplaceAllString(text, "")
	own := func(c rune) bool { return unicode.IsLetter(c) && !unicode.Is(unicode.Latin, c) }
	if strings.ContainsFunc(text, unicode.IsLetter) && !strings.ContainsFunc(text, own) {
		problems = append(problems, "has no letter of the script of the language; translate it")
	}
	for _, word := range latinWord.FindAllString(text, -1) {
		if word != strings.ToUpper(word) && !slices.Contains(english.Names, word) && !slices.Contains(r.Names, word) {
			problems = append(
				problems, fmt.Sprintf(`has the word %q in Latin letters; translate it, or add it to "names"`, word))
		}
	}
	return problems
}
