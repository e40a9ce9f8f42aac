package wire

import "strings"

// Upper returns a word of the protocol in capitals. It changes ASCII letters only: to
// Unicode, "ſ" and the Kelvin sign are forms of "s" and "k", and to FTP they are not.
func Upper(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, word)
}

// Equal reports whether two words of the protocol are the same, in any case of ASCII letters.
func Equal(a, b string) bool { return Upper(a) == Upper(b) }
