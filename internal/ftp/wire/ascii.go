package wire

import "strings"

// Upper returns a word of the protocol in capitals. It changes ASCII letters only, because Unicode would also fold
// "ſ" to "S" and the Kelvin sign to "K".
func Upper(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, word)
}

// Equal reports whether two words of the protocol are equal, ignoring the case of ASCII letters.
func Equal(a, b string) bool { return Upper(a) == Upper(b) }
