package charset

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// ErrInvalid says that bytes are no name in an encoding.
var ErrInvalid = errors.New("charset: the name is not in the encoding")

// The encodings that are no charsets.
const (
	utf8Name = "utf-8"
	rawName  = "raw"
)

// An Encoding is how a client writes pathnames: in UTF-8, in a charset from
// before it, or as bytes that mean nothing. Whatever it is, a name that one
// client has written is the same key for all, and Encode gives back what Decode
// was given. Nil and the zero value are UTF-8. An Encoding does not change and
// serves all sessions at once.
type Encoding struct {
	name      string
	charset   encoding.Encoding // nil for UTF-8 and raw
	preferred spellings
}

// Parse returns the encoding that a label stands for: "utf-8", "raw", or
// a charset by a label of the WHATWG's Encoding Standard or of IANA's registry,
// in upper or lower case.
//
// The WHATWG reads the labels as they are used: iso-8859-1 is windows-1252,
// iso-8859-9 is windows-1254, iso-8859-11 and tis-620 are windows-874, shift_jis
// and euc-kr have Microsoft's extensions. So do the devices that call their
// charset by these names: their 0x80 to 0x9F are quotation marks and the euro,
// if anything, and never the control characters of ISO 8859. String tells which
// charset it is.
//
// Charsets with shift states or with other characters in the place of ASCII's
// (iso-2022-jp, utf-16, EBCDIC) are refused: in them the bytes of "/" and "." may
// be parts of something else.
func Parse(label string) (*Encoding, error) {
	label = strings.ToLower(strings.TrimSpace(label))
	if label == rawName {
		return &Encoding{name: rawName}, nil
	}
	charset, name := lookUp(label)
	switch {
	case charset == nil:
		return nil, fmt.Errorf("there is no charset %q; write utf-8, raw, or a charset such as windows-1252, iso-8859-15, ibm850, koi8-r, shift_jis, euc-jp, gbk, big5 or euc-kr", label)
	case name == utf8Name:
		return &Encoding{name: utf8Name}, nil
	case name == "x-user-defined" || !extendsASCII(charset):
		return nil, fmt.Errorf("the charset %q cannot be that of pathnames, because it does not extend ASCII; write utf-8, or the charset in which the clients write a slash as the byte 2F", label)
	}
	return &Encoding{name: name, charset: charset, preferred: newSpellings(name, charset)}, nil
}

// lookUp returns a charset and its name. IANA's registry has the code pages of
// DOS, in which the FTP client of Windows' command prompt writes; the WHATWG
// comes first because it knows how labels are used.
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

// extendsASCII tells whether each byte of ASCII stands for itself. A charset with
// shift states has bytes that do not: ESC or "~".
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

// DisplayName returns the name as clients and people are shown it: that of IANA in
// upper case, and "8-BIT" for raw.
func (e *Encoding) DisplayName() string {
	if e.Raw() {
		return "8-BIT"
	}
	return strings.ToUpper(e.String())
}

// UTF8 tells whether names are UTF-8 and nothing else.
func (e *Encoding) UTF8() bool { return e.String() == utf8Name }

// Raw tells whether names are bytes without a meaning.
func (e *Encoding) Raw() bool { return e.String() == rawName }

// Decode returns the name, in UTF-8, that a client means by the bytes of one
// segment of a path. The error is ErrInvalid.
//
// Except in raw, a name that is valid UTF-8 is just that (RFC 2640, section 3.1).
// Few names in a charset look so, and those are very short: the one character 与
// in EUC-JP. In a charset other bytes are refused if they stand for no character
// or are a second spelling of one, because Encode could not give them back.
func (e *Encoding) Decode(name string) (string, error) {
	switch {
	case e.Raw():
		return escapeRaw(name), nil
	case utf8.ValidString(name):
		return name, nil
	case e.UTF8():
		return "", fmt.Errorf("%w: %q is not UTF-8", ErrInvalid, name)
	}
	decoded, err := e.charset.NewDecoder().String(name)
	// The decoder puts U+FFFD for what it does not know.
	if err != nil || strings.ContainsRune(decoded, utf8.RuneError) {
		return "", fmt.Errorf("%w: %q has bytes that stand for nothing in %s", ErrInvalid, name, e)
	}
	if encoded, ok := e.inCharset(decoded); !ok || encoded != name {
		return "", fmt.Errorf("%w: %q is not how %s writes %q", ErrInvalid, name, e, decoded)
	}
	return decoded, nil
}

// Encode returns the bytes of a name for a client. The name is a valid UTF-8
// segment of a key, and Decode makes it of these bytes again. The whole name stays
// UTF-8 where the charset lacks one of its characters (RFC 2640, section 3.1). It
// also does where its bytes would be valid UTF-8, because Decode would read
// another name. It returns
// false when no bytes stand for the name: it is not UTF-8, or the encoding is raw
// and the name was made elsewhere.
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

// inCharset returns the name in the charset if that has all of its characters.
func (e *Encoding) inCharset(name string) (string, bool) {
	encoder := e.charset.NewEncoder()
	var b strings.Builder
	for {
		i := strings.IndexFunc(name, e.preferred.have)
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
