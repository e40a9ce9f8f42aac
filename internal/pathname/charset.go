package pathname

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// A Charset writes text as bytes. Nil is UTF-8. A Charset does not change, and all sessions share it.
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

// Decode returns the text that the bytes stand for. It returns false for bytes that stand for no character, and for
// bytes that Encode would write otherwise, because Encode could not give them back.
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

// Encode returns the bytes that Decode turns into the text, and false if no bytes do.
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

// write returns the text in the charset, and false if the charset lacks a character.
func (c *Charset) write(text string) (string, bool) {
	encoder := c.codec.NewEncoder()
	var b strings.Builder
	for {
		i := strings.IndexFunc(text, c.preferred.has)
		if i < 0 {
			i = len(text)
		}
		// The encoder stops at a character that is missing.
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

// maxBytes limits the bytes of a character of a name in a charset. GB 18030 can write all of Unicode in four bytes,
// but names consist of the characters that GBK has.
const maxBytes = 2

// lacks reports whether a text has a character that names in the charset do not have.
func (c *Charset) lacks(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		if r < utf8.RuneSelf {
			return false
		}
		bytes, ok := c.Encode(string(r))
		return !ok || c.name == "gb18030" && len(bytes) > maxBytes
	})
}

// hasMultibyteCharacters reports whether the charset is one of East Asia, which has two bytes for most characters.
func (c *Charset) hasMultibyteCharacters() bool {
	switch c.name {
	case "gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr":
		return true
	}
	return false
}

// meant reports whether a name that a client has sent is in the charset rather than in UTF-8, if the clients of the
// charset are mixed with clients that write UTF-8. written is its reading in the charset, and inUTF8 the other one.
//
// The bytes of a name in an East Asian charset that are valid UTF-8 mostly look like Latin, Greek, Cyrillic or Arabic
// letters, which have two bytes in UTF-8, and rarely like other letters. The bytes of a name in UTF-8 look like letters
// and symbols in a charset of single bytes. Four bytes that are an emoji or another known character in UTF-8 are
// hardly anything else, but the Chinese characters among them are rarer than two characters of GB 2312 side by side.
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

// isKnownOfFourBytes reports whether a character that has four bytes in UTF-8 is likelier than two characters of the
// charset. Most of these code points have no character. From U+21000 on, the first two bytes are a character of
// GB 2312, of which most names in China consist, and the code points are characters that hardly any name has.
func (c *Charset) isKnownOfFourBytes(r rune) bool {
	const firstInGB2312 = 0x21000
	if (c.name == "gbk" || c.name == "gb18030") && r >= firstInGB2312 && unicode.Is(unicode.Han, r) {
		return false
	}
	return utf8.RuneLen(r) == 4 && unicode.IsGraphic(r)
}

// isSymbol reports whether a character is rare in names: a symbol beyond ASCII, a number such as "²", a mark of
// typesetters, or a format or control character.
func isSymbol(r rune) bool {
	return r >= utf8.RuneSelf && (!unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.P) ||
		strings.ContainsRune("§¶†‡•‰", r))
}

// lookUp returns a charset and its name. The WHATWG comes first because it knows how
// labels are used. IANA's registry has the code pages of DOS too, in which the FTP
// client of Windows' command prompt writes.
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

// aliases returns labels of vendors and programming languages that neither the WHATWG nor IANA has, with the name of
// their charset.
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

// extendsASCII reports whether each byte of ASCII stands for itself. In a charset with
// shift states, ESC or "~" does not.
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
