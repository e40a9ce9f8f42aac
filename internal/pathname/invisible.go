package pathname

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"unicode"
)

// ErrInvisible reports a name with a control character or another invisible character. It wraps [syscall.EILSEQ].
var ErrInvisible = fmt.Errorf("%w: invisible character", syscall.EILSEQ)

// An InvisibleError reports a new name with an invisible character, which would make it look like another name
// (draft-masinter-url-i18n section 5). It wraps [ErrInvisible].
type InvisibleError struct{ Char rune }

func (e *InvisibleError) Error() string {
	return fmt.Sprintf("the name has the invisible character %U, and would look like the name without it", e.Char)
}

// Unwrap returns ErrInvisible.
func (*InvisibleError) Unwrap() error { return ErrInvisible }

// invisibleIn returns the first invisible character of a name in a place where no script needs it, or 0.
// docs/pathnames.md has the list.
func invisibleIn(name string) rune {
	if isASCII(name) {
		return 0
	}
	chars := []rune(name)
	for i, r := range chars {
		if isIgnorable(r) && !isNeeded(chars, i) || i == len(chars)-1 && isUnusualSpace(r) {
			return r
		}
	}
	return 0
}

// isUnusualSpace reports whether a character is invisible at the end of a name. The space and the ideographic space
// are not included, because old devices pad names with them.
func isUnusualSpace(r rune) bool { return unicode.Is(unicode.Zs, r) && r != ' ' && r != '\u3000' }

// isIgnorable reports whether a character is invisible by itself: it has the Unicode property
// Default_Ignorable_Code_Point, separates lines or paragraphs, or begins, divides or ends an annotation.
func isIgnorable(r rune) bool {
	switch {
	case r == 0x2028, r == 0x2029, 0xfff9 <= r && r <= 0xfffb:
		return true
	case r == 0xad, 0x180b <= r && r <= 0x180f, 0xfe00 <= r && r <= 0xfe0f, r == 0xfeff, 0xe0000 <= r && r <= 0xe0fff:
		return true
	case 0x13430 <= r && r <= 0x13440, unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false // visible marks
	}
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point)
}

// Invisible characters that some names need, and their neighbors.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
	mongolianSeparator = '\u180e'
	hangulFiller       = '\u3164'
	textStyle          = '\ufe0e' // VARIATION SELECTOR-15, text style of emoji
	emojiStyle         = '\ufe0f'
	keycap             = '\u20e3'
	blackFlag          = '\U0001f3f4' // start of the flags of England, Scotland and Wales
)

// isNeeded reports whether the invisible character at an index changes the appearance of its neighbors: a joiner
// between joining letters, as in Persian and Hindi, a joiner or style of emoji, or a variant of a character.
func isNeeded(chars []rune, i int) bool {
	var before, after rune
	if i > 0 {
		before = chars[i-1]
	}
	if i+1 < len(chars) {
		after = chars[i+1]
	}
	switch r := chars[i]; {
	case r == zeroWidthNonJoiner:
		return isJoining(before) && (isJoining(after) || isVirama(before)) || isSuffixed(before, after)
	case r == hangulFiller:
		return slices.ContainsFunc([]int{i, i - 3}, func(start int) bool { return isComposed(chars, start) })
	case r == zeroWidthJoiner:
		return isJoining(before) || isJoining(after) || isEmoji(before) && isEmoji(after)
	case r == textStyle, r == emojiStyle:
		return isPictograph(before) || isKeycapBase(before) && after == keycap || unicode.Is(unicode.Han, before)
	case r == mongolianSeparator:
		return unicode.Is(unicode.Mongolian, before) && unicode.Is(unicode.Mongolian, after)
	case 0x180b <= r && r <= 0x180f:
		return unicode.Is(unicode.Mongolian, before)
	case 0xe0020 <= r && r <= 0xe007f:
		return before == blackFlag || 0xe0020 <= before && before < 0xe007f
	case unicode.Is(unicode.Variation_Selector, r):
		return unicode.Is(unicode.Han, before)
	}
	return false
}

// joiningScripts returns the scripts with joining letters, in which a joiner changes their appearance.
func joiningScripts() []*unicode.RangeTable {
	return []*unicode.RangeTable{
		unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Mandaic, unicode.Adlam,
		unicode.Hanifi_Rohingya, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
		unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer,
		unicode.Myanmar, unicode.Tibetan, unicode.Balinese, unicode.Javanese, unicode.Chakma, unicode.Grantha,
	}
}

// isJoining reports whether a character is a letter or mark of a script with joining letters.
func isJoining(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M) && unicode.In(r, joiningScripts()...)
}

// isSuffixed reports whether a non-joiner between two characters separates a Persian suffix or prefix from a number or
// a foreign word, as in PDF\u200cها. These would not join anyway, but Persian uses the non-joiner instead of a space.
func isSuffixed(before, after rune) bool {
	isArabic := func(r rune) bool { return unicode.In(r, unicode.L, unicode.M) && unicode.Is(unicode.Arabic, r) }
	isOther := func(r rune) bool { return unicode.In(r, unicode.L, unicode.Nd) || strings.ContainsRune(")]»\"”", r) }
	return isArabic(before) && unicode.In(after, unicode.L, unicode.Nd) || isOther(before) && isArabic(after)
}

// isComposed reports whether the characters at an index form a Hangul syllable that KS X 1001 has no code for, and
// therefore writes as letters: a filler, the first consonant, the vowel, and the last consonant or another filler.
func isComposed(chars []rune, start int) bool {
	const length = 4
	isConsonant := func(r rune) bool { return 0x3131 <= r && r <= 0x314e }
	isVowel := func(r rune) bool { return 0x314f <= r && r <= 0x3163 }
	if start < 0 || start+length > len(chars) {
		return false
	}
	c := chars[start : start+length]
	return c[0] == hangulFiller && isConsonant(c[1]) && isVowel(c[2]) && (isConsonant(c[3]) || c[3] == hangulFiller)
}

// isVirama reports whether a mark removes the vowel of the preceding letter, so that the next letter may join.
func isVirama(r rune) bool {
	return slices.Contains(
		[]rune{0x94d, 0x9cd, 0xa4d, 0xacd, 0xb4d, 0xbcd, 0xc4d, 0xccd, 0xd4d, 0xdca, 0x1039, 0x17d2}, r)
}

// isEmoji reports whether a character is part of an emoji and can be joined to another.
func isEmoji(r rune) bool { return r == emojiStyle || isPictograph(r) }

// isPictograph reports whether a character can be an emoji by itself: a symbol, or one of a few others.
func isPictograph(r rune) bool {
	return r > 0x7f && unicode.In(r, unicode.So, unicode.Sm, unicode.Sk) || slices.Contains([]rune("‼⁉〰〽ℹ"), r)
}

// isKeycapBase reports whether a character can be the base of a keycap emoji.
func isKeycapBase(r rune) bool { return '0' <= r && r <= '9' || r == '#' || r == '*' }
