package pathname

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Meant reports whether a device may have meant this reading of a name that was read as UTF-8. The server decides on
// new names in the same way if clients with UTF-8 use the same tenant.
func (r Reading) Meant(name string) bool { return r.Charset != nil && r.Charset.meant(r.Name, name) }

// Plausible reports whether people who use the charset may have chosen the name. It is stricter than the function
// [Plausible], because UTF-8 bytes look like letters in most single-byte charsets: all letters of a word must belong
// to one alphabet, capital letters must not follow small ones, and no opening quotation mark is allowed within a word.
func (r Reading) Plausible() bool {
	if !Plausible(r.Name) {
		return false
	}
	if r.Charset == nil || r.Charset.hasMultibyteCharacters() {
		return true
	}
	inWord := func(c rune) bool { return unicode.In(c, unicode.L, unicode.M) || isOpening(c) }
	for word := range strings.FieldsFuncSeq(r.Name, func(c rune) bool { return !inWord(c) }) {
		if !plausibleWord(word) {
			return false
		}
	}
	return true
}

// isOpening reports whether a character opens a quotation or parenthesis in all languages.
func isOpening(r rune) bool { return unicode.Is(unicode.Ps, r) }

// plausibleWord reports whether these letters and opening marks can form a word.
func plausibleWord(word string) bool {
	var last rune
	var script *unicode.RangeTable
	for _, r := range word {
		switch {
		case isOpening(r) && unicode.IsLetter(last), unicode.IsUpper(r) && unicode.IsLower(last):
			return false
		case unicode.IsLetter(r):
			own := scriptOf(r)
			if script != nil && own != script {
				return false
			}
			script = own
		}
		last = r
	}
	return script != unicode.Cyrillic || slices.ContainsFunc(cyrillicAlphabets(), func(letters string) bool {
		return !strings.ContainsFunc(strings.ToLower(word), func(r rune) bool {
			return unicode.Is(unicode.Cyrillic, r) && !strings.ContainsRune(letters, r)
		})
	})
}

// cyrillicAlphabets returns the letters of languages whose alphabets Cyrillic charsets support.
func cyrillicAlphabets() []string {
	const common = "абвгдежзиклмнопрстуфхцчш"
	return []string{
		common + "ёйщъыьэюя",   // Russian, Bulgarian
		common + "ґєіїйщьюя",   // Ukrainian
		common + "ёіўйыьэюя",   // Belarusian
		common + "ђѓѕјљњћќџѐѝ", // Serbian, Macedonian
	}
}

// Plausible reports whether people may have chosen a name that is valid UTF-8. The names of devices with legacy
// charsets are sometimes valid UTF-8 by chance, but then they mostly look like nothing that a person writes: adjacent
// letters of several scripts, letters that no language combines, or letters with symbols.
//
// Only characters with two bytes in UTF-8 can make a name implausible: Latin letters outside ASCII, Greek, Cyrillic,
// Hebrew, Arabic, and symbols of Latin-1. Two characters of an East Asian charset rarely have the bytes of longer
// ones.
func Plausible(name string) bool {
	for rest := name; ; {
		start := strings.IndexFunc(rest, isBeyondASCII)
		if start < 0 {
			return true
		}
		end := len(rest)
		if length := strings.IndexFunc(rest[start:], isASCIIRune); length >= 0 {
			end = start + length
		}
		var before, after rune
		if start > 0 {
			before = rune(rest[start-1])
		}
		if end < len(rest) {
			after = rune(rest[end])
		}
		if !plausibleRun(rest[start:end], before, after) {
			return false
		}
		rest = rest[end:]
	}
}

func isBeyondASCII(r rune) bool { return r >= utf8.RuneSelf }

func isASCIIRune(r rune) bool { return r < utf8.RuneSelf }

// plausibleRun reports whether people may write a run of non-ASCII characters between two ASCII characters, which are 0
// at the start or the end of the name.
func plausibleRun(run string, before, after rune) bool {
	const endOfTwoBytes = 0x800
	if strings.ContainsFunc(run, func(r rune) bool { return r >= endOfTwoBytes }) {
		return true
	}
	var script *unicode.RangeTable
	hasSign := false
	last := before
	for _, r := range run {
		switch {
		case !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S):
			return false // a control character or unassigned
		case unicode.IsMark(r):
			if !takesMark(last, r) {
				return false
			}
			continue // more marks may follow the letter
		case isSign(r):
			hasSign = hasSign || !strings.ContainsRune(ofFormulas, r)
		case unicode.IsLetter(r):
			own := scriptOf(r)
			if own == nil || script != nil && own != script {
				return false
			}
			script = own
		}
		last = r
	}
	switch {
	case utf8.RuneCountInString(run) == 1 && !unicode.IsLetter(before) && !unicode.IsLetter(after):
		return plausibleAlone(last, before, after)
	case script == nil:
		return true
	case hasSign, script != unicode.Greek && strings.ContainsFunc(run, isSign):
		return false
	case script == unicode.Latin:
		return inOneAlphabet(run)
	}
	return !strings.ContainsFunc(run, isArchaic)
}

// plausibleAlone reports whether people may write a single non-ASCII character without adjacent letters. Letters of
// only a few languages are not words, but letters of many languages may be the entries of an index.
func plausibleAlone(r, before, after rune) bool {
	const lastUsual = 0x45f // the last Cyrillic letter in Slavic languages
	switch script := scriptOf(r); {
	case script == unicode.Latin && !unicode.Is(unicode.Lm, r):
		return r < 0x100 && !strings.ContainsRune("ªº", r) || inAny(string(r), charmap.Windows1250, charmap.Windows1254, charmap.Windows1257)
	case script == unicode.Greek, script == unicode.Cyrillic:
		return r <= lastUsual && !isArchaic(r)
	}
	besideNothing := before == 0 && (after == 0 || after == '.' || after == '_' || after == '-')
	return !besideNothing || !unicode.In(r, unicode.Sk, unicode.Lm) && !strings.ContainsRune("¦ªº¬¿¡", r)
}

// ofFormulas are symbols that appear next to Greek letters, as in σ².
const ofFormulas = "²³¹°±×÷µ"

// isSign reports whether a character is a symbol or a number such as ½, which words do not contain.
func isSign(r rune) bool { return unicode.In(r, unicode.S, unicode.No) || r == micro }

// takesMark reports whether a mark may follow a letter. Greek and Cyrillic letters have no marks below.
func takesMark(letter, mark rune) bool {
	const firstBelow, lastBelow = 0x316, 0x333
	switch scriptOf(letter) {
	case nil:
		return false
	case unicode.Greek, unicode.Cyrillic:
		return mark < firstBelow || mark > lastBelow
	}
	return true
}

// micro is a letter in Unicode, and a symbol to people.
const micro = 'µ'

// scriptOf returns the script of a letter with at most two bytes in UTF-8, otherwise nil.
func scriptOf(r rune) *unicode.RangeTable {
	for _, script := range []*unicode.RangeTable{
		unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Hebrew, unicode.Arabic,
		unicode.Syriac, unicode.Thaana, unicode.Nko,
	} {
		if unicode.Is(script, r) {
			return script
		}
	}
	return nil
}

// isArchaic reports whether a Greek or Cyrillic letter is not used by any living language.
func isArchaic(r rune) bool {
	return 0x370 <= r && r <= 0x377 || 0x3cf <= r && r <= 0x3ff || 0x460 <= r && r <= 0x489
}

// inOneAlphabet reports whether a single language may use all Latin letters of a text. This is the case if an 8-bit
// charset has them all, or if they are letters that African and Asian languages add to the alphabet.
func inOneAlphabet(text string) bool {
	const added = "ƁƂƇƊƉƎƏƐƑƓƔƖƗƘƝƟƠƤƯƱƲƳƵɓƃƈɗɖǝəɛƒɠɣɩɨƙɲɵơƥưʊʋƴƶǍǎǏǐǑǒǓǔǕǖǗǘǙǚǛǜǦǧǨǩǪǫŋŊɔƆ"
	isOther := func(r rune) bool { return unicode.Is(unicode.Latin, r) && !strings.ContainsRune(added, r) }
	if !strings.ContainsFunc(text, isOther) {
		return true
	}
	return inAny(text, charmap.Windows1252, charmap.Windows1250, charmap.Windows1254, charmap.Windows1257,
		charmap.Windows1258, charmap.ISO8859_3, charmap.ISO8859_4, charmap.ISO8859_10, charmap.ISO8859_14,
		charmap.ISO8859_15, charmap.ISO8859_16)
}

// inAny reports whether one of the charsets has all Latin letters of a text.
func inAny(text string, charsets ...*charmap.Charmap) bool {
	return slices.ContainsFunc(charsets, func(charset *charmap.Charmap) bool {
		return !strings.ContainsFunc(text, func(r rune) bool {
			_, ok := charset.EncodeRune(r)
			return unicode.Is(unicode.Latin, r) && !ok
		})
	})
}
