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
	// ErrSyntax reports that the argument of LANG is not a language tag according to RFC 2640, section 4.2,
	// extended by digits. The reply is 501.
	ErrSyntax = errors.New("i18n: invalid language tag")
	// ErrUnsupported reports that no language matches. The reply is 504.
	ErrUnsupported = errors.New("i18n: unsupported language")
)

// tagSyntax is the grammar of RFC 2640, section 4.2, which only allows letters in subtags, extended by the
// digits that RFC 3066 added (es-419).
var tagSyntax = regexp.MustCompile(`^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$`)

// A Match is the result of a request for a language.
type Match struct {
	Tag language.Tag
	// Exact reports whether the reader gets the requested language in the requested script: en is exact for
	// en-AU, but pt-BR is not for pt-PT.
	Exact bool
	// OtherScript reports whether the language is written in another script than the requested one.
	OtherScript bool
}

// Negotiate finds the language for the argument of LANG (RFC 2640, section 4.2). The result may be another
// variant of the requested language, even in another script, but never another language: a reader of Basque
// does not get Spanish. The error is ErrSyntax or ErrUnsupported.
func (b *Bundle) Negotiate(arg string) (Match, error) {
	if !tagSyntax.MatchString(arg) {
		return Match{}, fmt.Errorf("%w: %q", ErrSyntax, arg)
	}
	want, err := language.Parse(arg)
	var unknown language.ValueError // an unknown subtag
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

// sameLanguage reports whether found satisfies a reader of want. The region only matters if found has
// one. Bokmål (nb) is as good as Norwegian (no), which names no written form.
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

// Match returns the language for a reader of want, by the rules of Negotiate. It returns false if none
// matches.
func (b *Bundle) Match(want language.Tag) (language.Tag, bool) {
	if _, ok := b.localizers[want]; ok {
		return want, true
	}
	i, ok := match(b.matcher, b.tags, want)
	return b.tags[i], ok
}

// match finds the tag for a reader of want. The confidence of the matcher separates scripts and variants: it
// is too low for zh-Hans if zh-TW is requested. But the matcher also assumes that readers know a second
// language (es for eu), so the base language must be the same.
func match(matcher language.Matcher, tags []language.Tag, want language.Tag) (index int, ok bool) {
	_, index, confidence := matcher.Match(want)
	return index, confidence >= language.High && base(want) == base(tags[index])
}

// base returns the base language of a tag, or the macrolanguage (zh for cmn) that it belongs to. CLDR has the
// macrolanguage of nb but not of nn (ISO 639-3).
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

// FeatTag formats a tag for the LANG line of FEAT. It is in upper case, like the examples of RFC 2640,
// section 4.3.1, for example PT-BR. LANG accepts it.
func FeatTag(tag language.Tag) string { return strings.ToUpper(tag.String()) }

// SelectText selects a text for a reader from texts by language, such as the greetings of a tenant, and
// returns it with its language. For each wanted language, and then for English, it returns the text of the
// first choice that has one. Failing that, it returns the only text of a choice, or an empty text.
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

// matchText returns the language of the text that suits a reader of want.
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
