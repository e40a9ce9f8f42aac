package reply

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// foldPunctuation replaces typographic characters, which few charsets have, with similar ASCII characters.
func foldPunctuation(text string) string {
	return strings.NewReplacer(
		"’", "'", "‘", "'", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`,
		"—", "-", "–", "-", "־", "-", "…", "...", "\u00a0", " ",
	).Replace(text)
}

// cedillas replaces the comma below of Romanian with the cedilla, which is the only form in most charsets older
// than Unicode 3.0, except ISO 8859-16.
func cedillas(text string) string {
	return strings.NewReplacer("ș", "ş", "Ș", "Ş", "ț", "ţ", "Ț", "Ţ").Replace(text)
}

// separateTones writes the tone marks of Vietnamese as separate characters for windows-1258, which has ê and a
// combining dot below, but not ệ.
func separateTones(text string) string {
	const tones = "\u0300\u0301\u0303\u0309\u0323"
	var b strings.Builder
	for _, r := range text {
		letter, tone := "", ""
		for _, part := range norm.NFD.String(string(r)) {
			if strings.ContainsRune(tones, part) {
				tone += string(part)
			} else {
				letter += string(part)
			}
		}
		b.WriteString(norm.NFC.String(letter) + tone)
	}
	return b.String()
}

// isASCII reports whether a text is the same in every charset.
func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}
