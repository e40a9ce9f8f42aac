package pathname

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// ErrNotInEncoding says that bytes are no name in an encoding.
var ErrNotInEncoding = errors.New("pathname: the name is not in the encoding")

// The encodings that are no charsets.
const (
	utf8Name = "utf-8"
	rawName  = "raw"
)

// An Encoding is how a client writes pathnames: in UTF-8, in a charset from
// before it, or as bytes that mean nothing. In each of them a name that
// one client has written is the same key for all, and Encode returns the bytes that
// Decode got. Nil and the zero value are UTF-8. An Encoding does not change and
// serves all sessions at once.
type Encoding struct {
	name      string
	charset   encoding.Encoding // nil for UTF-8 and raw
	preferred preferredBytes
}

// ParseEncoding returns the encoding of a label: "utf-8", "raw", or a charset. The labels of
// charsets are those of the WHATWG's Encoding Standard and of IANA's registry, in upper
// or lower case.
//
// The WHATWG reads the labels as they are used: iso-8859-1 is windows-1252,
// iso-8859-9 is windows-1254, iso-8859-11 and tis-620 are windows-874, shift_jis
// and euc-kr have Microsoft's extensions. So do the devices that use these labels. Their
// bytes 0x80 to 0x9F are quotation marks and the euro, and never the control characters
// of ISO 8859. String returns the name of the charset.
//
// Parse refuses charsets with shift states, and those with other characters in the
// place of ASCII's (iso-2022-jp, utf-16, EBCDIC). In these, the bytes of "/" and "."
// may be parts of other characters.
func ParseEncoding(label string) (*Encoding, error) {
	label = strings.ToLower(strings.TrimSpace(label))
	if label == rawName {
		return &Encoding{name: rawName}, nil
	}
	charset, name := lookUp(label)
	switch {
	case charset == nil:
		return nil, fmt.Errorf(
			"there is no charset %q; write utf-8, raw, or a charset such as windows-1252, iso-8859-15, ibm850, "+
				"koi8-r, shift_jis, euc-jp, gbk, big5 or euc-kr", label)
	case name == utf8Name:
		return &Encoding{name: utf8Name}, nil
	case name == "x-user-defined" || !extendsASCII(charset):
		return nil, fmt.Errorf(
			"the charset %q cannot be that of pathnames, because it does not extend ASCII; write utf-8, or the "+
				"charset in which the clients write a slash as the byte 2F", label)
	}
	return &Encoding{name: name, charset: charset, preferred: preferredBytesOf(name)}, nil
}

// lookUp returns a charset and its name. The WHATWG comes first because it knows how
// labels are used. IANA's registry has the code pages of DOS too, in which the FTP
// client of Windows' command prompt writes.
func lookUp(label string) (encoding.Encoding, string) {
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

// String returns the name: "utf-8", "raw" or that of the charset in lower case.
func (e *Encoding) String() string {
	if e == nil || e.name == "" {
		return utf8Name
	}
	return e.name
}

// DisplayName returns the name for clients and people: that of String in upper case,
// and "8-BIT" for raw.
func (e *Encoding) DisplayName() string {
	if e.Raw() {
		return "8-BIT"
	}
	return strings.ToUpper(e.String())
}

// UTF8 reports whether names are UTF-8 and nothing else.
func (e *Encoding) UTF8() bool { return e.String() == utf8Name }

// Raw reports whether names are bytes without a meaning.
func (e *Encoding) Raw() bool { return e.String() == rawName }

// Decode returns the name, in UTF-8, that a client means by the bytes of one
// segment of a path. The error is [ErrNotInEncoding].
//
// Except in raw, Decode takes a name that is valid UTF-8 for UTF-8 (RFC 2640, section
// 3.1). Few names in a charset are valid UTF-8, and those are very short: the one
// character 与 in EUC-JP. Decode refuses bytes that stand for no character. It also
// refuses bytes that Encode would not write, because it could not give them back.
func (e *Encoding) Decode(name string) (string, error) {
	switch {
	case e.Raw():
		return escapeRaw(name), nil
	case utf8.ValidString(name):
		return name, nil
	case e.UTF8():
		return "", fmt.Errorf("%w: %q is not UTF-8", ErrNotInEncoding, name)
	}
	decoded, err := e.charset.NewDecoder().String(name)
	// The decoder puts U+FFFD for what it does not know.
	if err != nil || strings.ContainsRune(decoded, utf8.RuneError) {
		return "", fmt.Errorf("%w: %q has bytes that stand for nothing in %s", ErrNotInEncoding, name, e)
	}
	if encoded, ok := e.inCharset(decoded); !ok || encoded != name {
		return "", fmt.Errorf("%w: %q is not how %s writes %q", ErrNotInEncoding, name, e, decoded)
	}
	return decoded, nil
}

// Encode returns the bytes that Decode makes the name of, which is a valid UTF-8
// segment of a key. If the charset lacks one of its characters the whole name is UTF-8,
// so that no data is lost (RFC 2640, section 3.1). It is UTF-8 as well if the bytes in
// the charset would be valid UTF-8, because Decode would take them for another name.
//
// Encode returns false when no bytes stand for the name: it is not UTF-8, or the
// encoding is raw and Decode never makes such a name.
func (e *Encoding) Encode(name string) (string, bool) {
	switch {
	case !utf8.ValidString(name):
		return "", false
	case e.Raw():
		return unescapeRaw(name)
	case e.UTF8() || isASCII(name):
		return name, true
	}
	encoded, ok := e.inCharset(name)
	if !ok {
		return name, true
	}
	if decoded, err := e.Decode(encoded); err != nil || decoded != name {
		return name, true
	}
	return encoded, true
}

// inCharset returns the name in the charset, and false if that lacks a character.
func (e *Encoding) inCharset(name string) (string, bool) {
	encoder := e.charset.NewEncoder()
	var b strings.Builder
	for {
		i := strings.IndexFunc(name, e.preferred.has)
		if i < 0 {
			i = len(name)
		}
		// The encoder stops at a character that is missing.
		encoded, err := encoder.String(name[:i])
		if err != nil {
			return "", false
		}
		b.WriteString(encoded)
		if i == len(name) {
			return b.String(), true
		}
		r, size := utf8.DecodeRuneInString(name[i:])
		b.WriteString(e.preferred[r])
		name = name[i+size:]
	}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
