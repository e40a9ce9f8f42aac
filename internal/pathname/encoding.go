package pathname

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrNotInEncoding reports bytes that are invalid in an encoding.
var ErrNotInEncoding = errors.New("pathname: the name is not in the encoding")

// Labels of encodings that are not legacy charsets.
const (
	utf8Name = "utf-8"
	rawName  = "raw"
)

// A Choice is the charset that the client of a session was found to use: the name of a charset, or Undecided.
type Choice string

// Choices that are not legacy charsets.
const (
	Undecided Choice = ""
	UTF8      Choice = utf8Name
)

// An Encoding determines how clients encode pathnames: in UTF-8, in one of several legacy charsets, or as raw bytes.
// In each case, a name from one client is the same key for all clients. Nil and the zero value are UTF-8. An Encoding
// is immutable, and all sessions share it.
type Encoding struct {
	raw      bool
	charsets []*Charset  // in order of preference; empty means UTF-8
	firsts   []*Encoding // for each charset, the same encoding with this charset first
}

// ParseEncoding returns the encoding for a list of labels: "utf-8", "raw", or charsets in order of preference. Clients
// may use UTF-8 even if the list only has other charsets; then UTF-8 comes last. Labels come from the WHATWG Encoding
// Standard, the registry of IANA, and vendors. They are case-insensitive.
//
// The WHATWG defines labels by their actual use: iso-8859-1 is windows-1252, iso-8859-9 is windows-1254, iso-8859-11
// and tis-620 are windows-874, and shift_jis and euc-kr include Microsoft's extensions. Devices with these labels do
// the same: their bytes 0x80 to 0x9F are quotation marks and the euro sign, and never the control characters of ISO
// 8859. String returns the name of the charset.
//
// ParseEncoding rejects charsets with shift states, and charsets that replace ASCII characters (iso-2022-jp, utf-16,
// EBCDIC), because the bytes of "/" and "." may be parts of other characters in them.
func ParseEncoding(labels ...string) (*Encoding, error) {
	e := &Encoding{}
	for _, label := range labels {
		label = strings.ToLower(strings.TrimSpace(label))
		if label == rawName {
			e.raw = true
			continue
		}
		charset, err := parseCharset(label)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(e.charsets, func(c *Charset) bool { return c.Name() == charset.Name() }) {
			return nil, fmt.Errorf("%q is the charset %s, which is already in the list; remove one", label, charset.Name())
		}
		e.charsets = append(e.charsets, charset)
	}
	switch {
	case e.raw && len(labels) > 1:
		return nil, errors.New("raw names are bytes without a charset; write raw alone, or a list of charsets")
	case len(labels) == 0:
		return nil, errors.New("the list of charsets is empty; write utf-8, raw or a charset")
	}
	for i, first := range e.charsets {
		others := slices.Delete(slices.Clone(e.charsets), i, i+1)
		e.firsts = append(e.firsts, &Encoding{charsets: append([]*Charset{first}, others...)})
	}
	return e, nil
}

// parseCharset returns the charset for a label in lower case.
func parseCharset(label string) (*Charset, error) {
	codec, name := lookUp(label)
	switch {
	case codec == nil:
		return nil, fmt.Errorf("unknown charset %q; write utf-8, raw, or one of %s",
			label, strings.Join(supportedCharsets(), ", "))
	case name == utf8Name:
		return nil, nil
	case name == "x-user-defined" || !extendsASCII(codec):
		return nil, fmt.Errorf(
			"the charset %q cannot be used for pathnames, because it does not extend ASCII; write utf-8, or the "+
				"charset in which the clients write a slash as the byte 2F", label)
	}
	return &Charset{name: name, codec: codec, preferred: preferredBytesOf(name)}, nil
}

// supportedCharsets returns the names of all charsets that are supported for pathnames, as error messages list them.
func supportedCharsets() []string {
	return []string{
		"big5", "euc-jp", "euc-kr", "gb18030", "gbk", "ibm437", "ibm850", "ibm852", "ibm855", "ibm00858", "ibm860",
		"ibm862", "ibm863", "ibm865", "ibm866", "iso-8859-1", "iso-8859-2", "iso-8859-3", "iso-8859-4", "iso-8859-5", "iso-8859-6",
		"iso_8859-6-e", "iso_8859-6-i", "iso-8859-7", "iso-8859-8", "iso_8859-8-e", "iso-8859-8-i", "iso-8859-9", "iso-8859-10", "iso-8859-11",
		"iso-8859-13", "iso-8859-14", "iso-8859-15", "iso-8859-16", "koi8-r", "koi8-u", "macintosh", "shift_jis",
		"windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254", "windows-1255", "windows-1256",
		"windows-1257", "windows-1258", "windows-874", "x-mac-cyrillic",
	}
}

// inOrder returns the charsets in order of preference. It is never empty.
func (e *Encoding) inOrder() []*Charset {
	if e == nil || len(e.charsets) == 0 {
		return []*Charset{nil}
	}
	return e.charsets
}

// names reports whether a charset is configured; nil is UTF-8.
func (e *Encoding) names(c *Charset) bool { return slices.Contains(e.inOrder(), c) }

// String returns "raw", or the names of the charsets in lower case.
func (e *Encoding) String() string {
	if e.Raw() {
		return rawName
	}
	var names []string
	for _, c := range e.inOrder() {
		names = append(names, string(c.Name()))
	}
	return strings.Join(names, ", ")
}

// DisplayName returns the name for clients and people: String in upper case, and "8-BIT" for raw.
func (e *Encoding) DisplayName() string {
	if e.Raw() {
		return "8-BIT"
	}
	return strings.ToUpper(e.String())
}

// UTF8 reports whether UTF-8 is the only charset.
func (e *Encoding) UTF8() bool {
	charsets := e.inOrder()
	return !e.Raw() && len(charsets) == 1 && charsets[0] == nil
}

// Raw reports whether names are raw bytes.
func (e *Encoding) Raw() bool { return e != nil && e.raw }

// BeforeUTF8 returns the first charset other than UTF-8, or Undecided.
func (e *Encoding) BeforeUTF8() Choice {
	for _, c := range e.inOrder() {
		if c != nil {
			return c.Name()
		}
	}
	return Undecided
}

// For returns the encoding for a session that has decided on a charset: UTF-8 alone, or the charsets with the chosen
// one first. Raw names stay raw.
func (e *Encoding) For(choice Choice) *Encoding {
	switch {
	case e.Raw():
		return e
	case choice == UTF8:
		return nil
	case e == nil || choice == Undecided:
		return e
	}
	for i, first := range e.firsts {
		if e.charsets[i].Name() == choice {
			return first
		}
	}
	return e
}

// A Reading is the meaning of the bytes of a name in one charset.
type Reading struct {
	Name    string // in UTF-8
	Charset *Charset
}

// Readings returns the possible meanings of the bytes of one path segment, in order of preference. For raw names and
// for ASCII there is one reading. Without any reading, the error is [ErrNotInEncoding].
func (e *Encoding) Readings(bytes string) ([]Reading, error) {
	if e.Raw() {
		return []Reading{{Name: escapeRaw(bytes)}}, nil
	}
	if isASCII(bytes) {
		return []Reading{{Name: bytes}}, nil
	}
	var readings []Reading
	add := func(c *Charset) {
		name, ok := c.Decode(bytes)
		if ok && !slices.ContainsFunc(readings, func(r Reading) bool { return r.Name == name }) {
			readings = append(readings, Reading{name, c})
		}
	}
	charsets := e.inOrder()
	for _, c := range charsets {
		add(c)
	}
	if !e.names(nil) {
		add(nil)
	}
	if len(readings) == 0 {
		return nil, fmt.Errorf("%w: %q is not valid in %s", ErrNotInEncoding, bytes, e)
	}
	return readings, nil
}

// Decode returns the first of the Readings.
func (e *Encoding) Decode(bytes string) (string, error) {
	switch {
	case e.Raw():
		return escapeRaw(bytes), nil
	case isASCII(bytes):
		return bytes, nil
	}
	readings, err := e.Readings(bytes)
	if err != nil {
		return "", err
	}
	return readings[0].Name, nil
}

// Encode returns bytes whose Readings include name, which is a valid UTF-8 segment of a key. It uses the first charset
// that can encode the whole name, and otherwise UTF-8, so that no data is lost (RFC 2640 section 3.1).
//
// Encode returns false if no bytes represent the name: it is not UTF-8, or the encoding is raw and Decode never
// returns such a name.
func (e *Encoding) Encode(name string) (string, bool) {
	switch {
	case !utf8.ValidString(name):
		return "", false
	case e.Raw():
		return unescapeRaw(name)
	case isASCII(name):
		return name, true
	}
	bytes, _ := e.encode(name)
	return bytes, true
}

// encode returns the bytes of a non-ASCII name, and their charset.
func (e *Encoding) encode(name string) (string, *Charset) {
	for _, c := range e.inOrder() {
		if bytes, ok := c.Encode(name); ok {
			return bytes, c
		}
	}
	return name, nil
}
