package i18n

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

var (
	// ErrSyntax says that LANG's argument is no language tag by the grammar of
	// RFC 2640, section 4.2, with digits as in later tags. The reply is 501.
	ErrSyntax = errors.New("i18n: not a language tag by RFC 2640")
	// ErrUnsupported says that no language matches. The reply is 504.
	ErrUnsupported = errors.New("i18n: no such language")
)

// tagSyntax is that of RFC 2640, section 4.2, where a sub-tag has letters only as
// tags had then. RFC 3066 added digits: es-419.
var tagSyntax = regexp.MustCompile(`^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$`)

// A Match is the language that a request for a language gets.
type Match struct {
	Tag language.Tag
	// Exact says that the reader gets what was requested: the language in its
	// script, for en-AU also en. It is not what is written in another region, such
	// as pt-BR for pt-PT.
	Exact bool
	// OtherScript says that the language is written in another script than the requested one.
	OtherScript bool
}

// Negotiate finds the language for the argument of LANG (RFC 2640, section 4.2). It
// may be another variant of the requested language, also in another script, but never
// another language: a reader of Basque gets no Spanish. The error is ErrSyntax or ErrUnsupported.
func (b *Bundle) Negotiate(arg string) (Match, error) {
	if !tagSyntax.MatchString(arg) {
		return Match{}, fmt.Errorf("%w: %q", ErrSyntax, arg)
	}
	want, err := language.Parse(arg)
	var unknown language.ValueError // a sub-tag that BCP 47 does not know
	if err != nil && !errors.As(err, &unknown) {
		return Match{}, fmt.Errorf("%w: %q: %w", ErrUnsupported, arg, err)
	}
	if found, ok := b.Match(want); ok {
		return Match{Tag: found, Exact: err == nil && sameLanguage(want, found)}, nil
	}
	wantBase, wantConfidence := want.Base()
	for _, tag := range b.tags {
		if tagBase, _ := tag.Base(); wantConfidence == language.Exact && tagBase == wantBase {
			return Match{Tag: tag, OtherScript: true}, nil
		}
	}
	return Match{}, fmt.Errorf("%w: %q", ErrUnsupported, arg)
}

// sameLanguage reports whether a reader of want finds in found what was wanted. A
// region counts only where found has one too. Norwegian (no) is wanted of no form in
// particular, so that Bokmål (nb) is what was wanted.
func sameLanguage(want, found language.Tag) bool {
	wantBase, wantScript, wantRegion := want.Raw()
	foundBase, _, foundRegion := found.Raw()
	if wantScript == (language.Script{}) {
		wantScript, _ = want.Script()
	}
	if wantRegion == (language.Region{}) {
		wantRegion, _ = want.Region()
	}
	foundScript, _ := found.Script()
	sameBase := wantBase == foundBase || wantBase == base(found)
	return sameBase && wantScript == foundScript && (foundRegion == (language.Region{}) || foundRegion == wantRegion)
}

// Match returns the language for a reader of the wanted one, by the rules of
// Negotiate, and false if there is none.
func (b *Bundle) Match(want language.Tag) (language.Tag, bool) {
	if _, ok := b.localizers[want]; ok {
		return want, true
	}
	i, ok := match(b.matcher, b.tags, want)
	return b.tags[i], ok
}

// match finds the tag for a reader of want. The matcher's confidence separates
// scripts and variants: it is too low for zh-Hans when zh-TW is wanted. But it also
// trusts readers to know a second language (es for eu), so the language must be
// the same.
func match(matcher language.Matcher, tags []language.Tag, want language.Tag) (index int, ok bool) {
	_, index, confidence := matcher.Match(want)
	return index, confidence >= language.High && base(want) == base(tags[index])
}

// base returns the language of a tag, the macrolanguage (zh for cmn) if it
// belongs to one. CLDR names the macrolanguage of nb, but not that of nn (ISO 639-3).
func base(tag language.Tag) language.Base {
	if macro, err := language.Macro.Canonicalize(tag); err == nil {
		tag = macro
	}
	b, _ := tag.Base()
	if b.String() == "nn" {
		return language.MustParseBase("no")
	}
	return b
}

// FeatTag returns a tag as the LANG line of FEAT shows it, and as LANG accepts it.
// It is in upper case like the examples of RFC 2640, section 4.3.1: PT-BR.
func FeatTag(tag language.Tag) string { return strings.ToUpper(tag.String()) }

// SelectText returns a text for a reader, and its language, from texts by language such as the greetings of a tenant.
// For each wanted language, and then for English, it takes the first of the choices that has a text. Otherwise it takes
// the only text of a choice. It returns "" if no choice has a text for the reader.
func SelectText(wanted []language.Tag, choices ...map[language.Tag]string) (language.Tag, string) {
	for _, want := range append(slices.Clip(wanted), language.English) {
		for _, texts := range choices {
			if tag, ok := matchText(texts, want); ok {
				return tag, texts[tag]
			}
		}
	}
	for _, texts := range choices {
		if len(texts) == 1 {
			for tag, text := range texts {
				return tag, text
			}
		}
	}
	return language.Und, ""
}

// matchText returns the language of the text for a reader of want.
func matchText(texts map[language.Tag]string, want language.Tag) (language.Tag, bool) {
	if _, ok := texts[want]; ok {
		return want, true
	}
	tags := slices.SortedFunc(maps.Keys(texts), compareTags)
	if len(tags) == 0 {
		return language.Und, false
	}
	i, ok := match(language.NewMatcher(tags), tags, want)
	return tags[i], ok
}
