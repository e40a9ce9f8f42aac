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

// rulesFileName is the name of the file with the rules of a language.
const rulesFileName = "language.yaml"

// Rules are the rules of one language for its glossary, punctuation and script. They are in a file next to
// the catalog, so that translators can change them without Go. The English glossary defines the terms and how
// to find them in English texts. The glossary of another language defines how translations of these texts
// name the terms.
type Rules struct {
	languageFile
	latin    bool // the language is written in Latin letters
	english  bool // English or a variant of it
	terms    map[string]expressions
	patterns []*regexp.Regexp // by typography rule
}

// languageFile is the content of language.yaml.
type languageFile struct {
	Reviewed      string            `yaml:"reviewed"`        // who reviewed the texts, or how they were reviewed
	ReviewedOn    string            `yaml:"reviewed_on"`     // the date of the review, as 2006-01-02
	Ends          map[string]string `yaml:"ends"`            // by the English end of a text: "." ":" or "?"
	Names         []string          `yaml:"names"`           // words that stay in Latin letters in every script
	SameAsEnglish []string          `yaml:"same_as_english"` // messages whose text may equal the English one
	// lower-case words of four letters or more that English spells the same
	Cognates   []string        `yaml:"cognates"`
	Glossary   map[string]term `yaml:"glossary"`
	Typography []typography    `yaml:"typography"`
}

// A term is a translation of a term in the English glossary. The forms are regular expressions that ignore
// case; they usually match a stem, to allow inflection. Except and Unlike of the English glossary apply to
// all languages.
type term struct {
	Say    []string `yaml:"say"`    // at least one must match if the English text has the term
	Not    []string `yaml:"not"`    // must not match in any text
	Except []string `yaml:"except"` // messages that need not match Say
	Unlike []string `yaml:"unlike"` // messages about something else, which must not match Say
}

type expressions struct{ say, not *regexp.Regexp }

// A typography rule describes a convention in Rule. Wrong is a regular expression that matches violations.
type typography struct {
	Rule  string `yaml:"rule"`
	Wrong string `yaml:"wrong"`
}

// ReadRules reads <tag>/language.yaml. It returns fs.ErrNotExist if the file does not exist.
func ReadRules(dir fs.FS, tag language.Tag) (*Rules, error) {
	data, err := fs.ReadFile(dir, path.Join(tag.String(), rulesFileName))
	if err != nil {
		return nil, err
	}
	return parseRules(data, tag)
}

// parseRules parses language.yaml. The error joins its problems, each with advice.
func parseRules(data []byte, tag language.Tag) (*Rules, error) {
	base, _ := tag.Base()
	script, _ := tag.Script()
	r := &Rules{latin: script.String() == "Latn", english: base.String() == "en", terms: make(map[string]expressions)}
	if err := yaml.Load(data, &r.languageFile, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("invalid language.yaml: %w", err)
	}
	var errs []error
	problem := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Reviewed == "" {
		problem(`missing "reviewed"; write who reviewed the texts, or how`)
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
			problem(`term %q: missing "say"; add the translation of the term`, id)
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

// Review returns who reviewed the texts, or how they were reviewed, and when. It returns an empty string if
// the rules are missing or invalid.
func Review(dir fs.FS, tag language.Tag) string {
	r, err := ReadRules(dir, tag)
	if err != nil {
		return ""
	}
	return r.Reviewed + ", " + r.ReviewedOn
}

// compile joins the forms of a term into one regular expression, or returns nil without forms.
func compile(forms []string) (*regexp.Regexp, error) {
	if len(forms) == 0 {
		return nil, nil
	}
	return expression("(?i)(?:" + strings.Join(forms, "|") + ")")
}

// expression compiles a regular expression in which \b is a word boundary in every script. In package regexp,
// it only knows ASCII letters.
func expression(text string) (*regexp.Regexp, error) {
	return regexp.Compile(strings.ReplaceAll(text, `\b`, `(?:^|$|[^\p{L}\p{M}\p{N}_])`))
}

// ends returns the final punctuation marks that a language may replace by its own.
func ends() []string { return []string{".", ":", "?"} }

// Compare returns the missing and unknown terms compared with the English rules, and the message IDs that
// known does not accept.
func (r *Rules) Compare(english *Rules, known func(message string) bool) (problems []string) {
	messages := slices.Clone(r.SameAsEnglish)
	for _, id := range slices.Sorted(maps.Keys(r.Glossary)) {
		if _, ok := english.Glossary[id]; !ok {
			problems = append(
				problems, fmt.Sprintf(
					"term %q: unknown term; the terms are %s", id,
					strings.Join(slices.Sorted(maps.Keys(english.Glossary)), ", ")))
		}
		messages = append(messages, slices.Concat(r.Glossary[id].Except, r.Glossary[id].Unlike)...)
	}
	for _, id := range slices.Sorted(maps.Keys(english.Glossary)) {
		if _, ok := r.Glossary[id]; !ok {
			problems = append(problems, fmt.Sprintf("term %q: missing; add its translation", id))
		}
	}
	for _, id := range messages {
		if !known(id) {
			problems = append(problems, fmt.Sprintf("message %q: unknown message; remove it", id))
		}
	}
	return problems
}

// MayBeEnglish reports whether the text of a message may equal the English one.
func (r *Rules) MayBeEnglish(message string) bool {
	return ID(message).isSize() || r != nil && slices.Contains(r.SameAsEnglish, message)
}

var (
	placeholder = regexp.MustCompile(`\{\w+\}`)
	command     = regexp.MustCompile(`\b[A-Z][A-Z0-9-]{2,}\b`)
	latinWord   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9]*`)
	latinWords  = regexp.MustCompile(`\p{Latin}+`)
)

// Check returns the problems of a translation. Placeholders and names of commands are not checked as words.
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
					"%q is excluded by the glossary for the term %q; use %s", found, id,
					strings.Join(term.Say, " or "))
			}
		}
		if slices.Contains(term.Unlike, message) || slices.Contains(english.Glossary[id].Unlike, message) {
			if found := strings.TrimSpace(form.say.FindString(words)); found != "" {
				problem("%q is the term %q, which means something else; use another word", found, id)
			}
		}
		if !english.has(id, message, source) || slices.Contains(term.Except, message) {
			continue
		}
		if !form.say.MatchString(words) {
			problem("lacks the glossary form of the term %q; use %s", id, strings.Join(term.Say, " or "))
		}
	}
	switch {
	case ID(message).isSize():
	case !r.latin:
		problems = append(problems, r.wrongScript(english, text)...)
	case !r.english && !r.MayBeEnglish(message) && ID(message).InReply() && !ID(message).InSyntax():
		// headings and arguments are the same in many languages
		for _, word := range r.LeftOver(source, words) {
			problem(`has the English word %q; translate it, or add it to "cognates"`, word)
		}
	}
	return problems
}

// LeftOver returns the words that a text in Latin letters shares with its English source, except for
// cognates. Short words are ignored, because many of them are the same by chance.
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

// has reports whether an English text has a term that its translations must name.
func (r *Rules) has(id, message, text string) bool {
	say := r.terms[id].say
	return say != nil && say.MatchString(text) && !slices.Contains(r.Glossary[id].Except, message)
}

// wrongEnd compares the final punctuation of a text and its English source.
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
				return fmt.Sprintf("does not end in %q although the English text ends in %q; correct the end", want, end)
			}
			return ""
		}
	}
	for _, end := range ends() {
		if own := ending(end); strings.HasSuffix(text, end) || own != "" && strings.HasSuffix(text, own) {
			return "ends in punctuation that does not belong there; remove it"
		}
	}
	return ""
}

// wrongScript finds English words in a language with another script. Upper-case words such as commands and
// abbreviations are allowed, and so are texts without letters, such as {Part} / {Whole}.
func (r *Rules) wrongScript(english *Rules, text string) (problems []string) {
	text = placeholder.ReplaceAllString(text, "")
	own := func(c rune) bool { return unicode.IsLetter(c) && !unicode.Is(unicode.Latin, c) }
	if strings.ContainsFunc(text, unicode.IsLetter) && !strings.ContainsFunc(text, own) {
		problems = append(problems, "has no letters in the script of the language; translate it")
	}
	for _, word := range latinWord.FindAllString(text, -1) {
		if word != strings.ToUpper(word) && !slices.Contains(english.Names, word) && !slices.Contains(r.Names, word) {
			problems = append(
				problems, fmt.Sprintf(`has the word %q in Latin letters; translate it, or add it to "names"`, word))
		}
	}
	return problems
}
