package pathname

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// A Charset encodes text as bytes. Nil is UTF-8. A Charset is immutable, and all sessions share it.
type Charset struct {
	name      string
	codec     encoding.Encoding
	preferred preferredBytes
}

// Name returns the name of the charset in lower case.
func (c *Charset) Name() Choice {
	if c == nil {
		return UTF8
	}
	return Choice(c.name)
}

// Decode returns the text for these bytes. It returns false for invalid bytes, and for bytes that differ from what
// Encode would write, because Encode could not return them.
func (c *Charset) Decode(bytes string) (string, bool) {
	if c == nil {
		return bytes, utf8.ValidString(bytes)
	}
	text, err := c.codec.NewDecoder().String(bytes)
	// The decoder returns U+FFFD for invalid bytes.
	if err != nil || strings.ContainsRune(text, utf8.RuneError) {
		return "", false
	}
	if encoded, ok := c.write(text); !ok || encoded != bytes {
		return "", false
	}
	return text, true
}

// Encode returns the bytes that Decode turns into the text, and false if there are no such bytes.
func (c *Charset) Encode(text string) (string, bool) {
	if c == nil {
		return text, utf8.ValidString(text)
	}
	bytes, ok := c.write(text)
	if !ok {
		return "", false
	}
	decoded, ok := c.Decode(bytes)
	return bytes, ok && decoded == text
}

// write encodes a text. It returns false if the charset lacks a character.
func (c *Charset) write(text string) (string, bool) {
	encoder := c.codec.NewEncoder()
	var b strings.Builder
	for {
		i := strings.IndexFunc(text, c.preferred.has)
		if i < 0 {
			i = len(text)
		}
		// The encoder stops at a missing character.
		encoded, err := encoder.String(text[:i])
		if err != nil {
			return "", false
		}
		b.WriteString(encoded)
		if i == len(text) {
			return b.String(), true
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		b.WriteString(c.preferred[r])
		text = text[i+size:]
	}
}

// maxBytes limits the bytes of a character in names. GB 18030 encodes the rest of Unicode with four bytes, but names
// consist of characters that GBK has.
const maxBytes = 2

// lacks reports whether a text has a character that names in this charset do not contain.
func (c *Charset) lacks(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		if r < utf8.RuneSelf {
			return false
		}
		bytes, ok := c.Encode(string(r))
		return !ok || c.name == "gb18030" && len(bytes) > maxBytes
	})
}

// hasMultibyteCharacters reports whether this is an East Asian charset with two bytes for most characters.
func (c *Charset) hasMultibyteCharacters() bool {
	switch c.name {
	case "gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr":
		return true
	}
	return false
}

// meant reports whether a name from a client is in this charset rather than in UTF-8, if both kinds of clients are
// mixed. written is its reading in this charset, and inUTF8 its reading in UTF-8.
//
// If the bytes of a name in an East Asian charset are valid UTF-8, they mostly look like Latin, Greek, Cyrillic or
// Arabic letters, which have two bytes in UTF-8, and rarely like other letters. The bytes of a UTF-8 name look like
// letters and symbols in a single-byte charset. Four bytes that are an emoji or another known character in UTF-8 are
// hardly anything else. The exception are Chinese characters, which are rarer than two adjacent characters of GB 2312.
func (c *Charset) meant(written, inUTF8 string) bool {
	if strings.ContainsFunc(inUTF8, c.isKnownOfFourBytes) {
		return false
	}
	if c.hasMultibyteCharacters() {
		return c.lacks(inUTF8) || strings.ContainsFunc(inUTF8, hasTwoBytesInUTF8)
	}
	return c.lacks(inUTF8) && !strings.ContainsFunc(written, isSymbol)
}

func hasTwoBytesInUTF8(r rune) bool { return utf8.RuneLen(r) == 2 }

// isKnownOfFourBytes reports whether a character with four bytes in UTF-8 is more likely than two characters of the
// charset. Most of these code points are unassigned. From U+21000 on, the first two bytes are a character of GB 2312,
// which most names in China consist of, and the code points are characters that names hardly ever contain.
func (c *Charset) isKnownOfFourBytes(r rune) bool {
	const firstInGB2312 = 0x21000
	if (c.name == "gbk" || c.name == "gb18030") && r >= firstInGB2312 && unicode.Is(unicode.Han, r) {
		return false
	}
	return utf8.RuneLen(r) == 4 && unicode.IsGraphic(r)
}

// isSymbol reports whether a character is rare in names: a symbol outside ASCII, a number such as "²", a typographic
// mark, or a format or control character.
func isSymbol(r rune) bool {
	return r >= utf8.RuneSelf && (!unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.P) ||
		strings.ContainsRune("§¶†‡•‰", r))
}

// lookUp returns a charset and its name. It tries the WHATWG labels first, because they reflect actual usage. IANA's
// registry also has the DOS code pages, which the FTP client of the Windows command prompt uses.
func lookUp(label string) (encoding.Encoding, string) {
	if name, ok := aliases()[label]; ok {
		label = name
	}
	if charset, err := htmlindex.Get(label); err == nil {
		name, _ := htmlindex.Name(charset)
		return charset, name
	}
	charset, err := ianaindex.IANA.Encoding(label)
	if err != nil || charset == nil {
		return nil, ""
	}
	if name, err := htmlindex.Name(charset); err == nil {
		return charset, name
	}
	name, _ := ianaindex.IANA.Name(charset)
	return charset, strings.ToLower(name)
}

// aliases maps labels of vendors and programming languages that neither the WHATWG nor IANA lists to charset names.
func aliases() map[string]string {
	return map[string]string{
		"cp932": "shift_jis", "ms932": "shift_jis", "windows-932": "shift_jis",
		"ms936": "gbk", "windows-936": "gbk", "euc-cn": "gbk", "euccn": "gbk", "cp54936": "gb18030",
		"cp949": "euc-kr", "ms949": "euc-kr", "uhc": "euc-kr", "euckr": "euc-kr", "euc_kr": "euc-kr", "cp51949": "euc-kr",
		"cp950": "big5", "ms950": "big5", "windows-950": "big5", "big5hkscs": "big5",
		"eucjp": "euc-jp", "euc_jp": "euc-jp", "eucjp-ms": "euc-jp", "eucjp-win": "euc-jp", "cp51932": "euc-jp",
		"koi8r": "koi8-r", "koi8u": "koi8-u", "cp20866": "koi8-r", "cp21866": "koi8-u",
		"latin-1": "iso-8859-1", "latin-2": "iso-8859-2", "latin-9": "iso-8859-15", "latin9": "iso-8859-15",
		"cp874": "windows-874", "cp65001": utf8Name, "utf8": utf8Name, "utf_8": utf8Name,
	}
}

// extendsASCII reports whether each ASCII byte represents its ASCII character. In charsets with shift states, ESC or
// "~" does not.
func extendsASCII(charset encoding.Encoding) bool {
	for b := range byte(utf8.RuneSelf) {
		s := string(rune(b))
		if decoded, err := charset.NewDecoder().String(s); err != nil || decoded != s {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
