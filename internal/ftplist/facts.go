package ftplist

import (
	"crypto/sha256"
	"encoding/base64"
	"io/fs"
	"mime"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/charset"
	"github.com/babelftp/babelftp/internal/vfs"
)

// A View is what facts depend on besides the entry: for whom they are written.
type View struct {
	// Rights says what the user may do with what an absolute pathname names; nil
	// leaves out "perm".
	Rights func(name string) vfs.Rights
	// NoOverwrite says that the storage lets no file be replaced or appended to.
	NoOverwrite bool
	// ObjectURI is the s3 URI of a pathname, empty where there is none; nil leaves
	// out "unique".
	ObjectURI func(name string) string
	// Charset is that in which the client is shown the names in a directory.
	Charset func(dir string) *charset.Encoding
}

// An Entry is a file or directory as MLST and MLSD tell of it.
type Entry struct {
	fs.FileInfo
	Dir string // absolute pathname of the directory that the name is in
}

// pathname is the entry's own, absolute.
func (e Entry) pathname() string { return path.Join(e.Dir, e.Name()) }

// The names in a directory of the directory itself and of its parent. No key is
// called so.
const (
	ThisDirectory   = "."
	ParentDirectory = ".."
)

// kind is the value of the fact "type" (RFC 3659 7.5.1).
func (e Entry) kind() string {
	switch {
	case e.Name() == ThisDirectory:
		return "cdir"
	case e.Name() == ParentDirectory:
		return "pdir"
	case e.IsDir():
		return "dir"
	}
	return "file"
}

// objectInfo is what a FileInfo's Sys may know of an object. What the storage
// was not told is zero: a listing brings the time only.
type objectInfo interface {
	Created() time.Time
	MediaType() string    // as Content-Type writes it, perhaps with parameters
	NameLanguage() string // the language tag of the name
}

// Facts are those that MLST and MLSD show, in the order in which they show them.
type Facts []fact

// A fact is one of MLST's (RFC 3659 7.5).
type fact struct {
	name      string
	byDefault bool // shown until OPTS MLST
	// appendTo writes the value of an entry, or returns false when it has none.
	appendTo func(b []byte, v *View, e Entry) ([]byte, bool)
}

// allFacts are the facts that this server knows, in the order of FEAT.
//
// Lang and charset are not those of the content: RFC 3659 7.5.6 and 7.5.9 say
// that they are the name's.
func allFacts() Facts {
	return Facts{
		{"type", true, appendType},
		{"size", true, appendSize},
		{"modify", true, appendModify},
		{"create", false, appendCreate},
		{"perm", true, appendPerm},
		{"unique", false, appendUnique},
		{"media-type", false, appendMediaType},
		{"charset", false, appendCharset},
		{"lang", false, appendLang},
	}
}

// DefaultFacts are those that MLST and MLSD show until OPTS MLST.
func DefaultFacts() Facts {
	return slices.DeleteFunc(allFacts(), func(f fact) bool { return !f.byDefault })
}

// Has reports whether a fact is among them.
func (facts Facts) Has(name string) bool {
	return slices.ContainsFunc(facts, func(f fact) bool { return f.name == name })
}

// Append writes the facts of an entry, each as "size=3;", and the SP before the
// name.
func (facts Facts) Append(b []byte, v *View, e Entry) []byte {
	for _, f := range facts {
		before := len(b)
		value, ok := f.appendTo(append(append(b, f.name...), '='), v, e)
		if !ok {
			b = b[:before]
			continue
		}
		b = append(value, ';')
	}
	return append(b, ' ')
}

func appendType(b []byte, _ *View, e Entry) ([]byte, bool) {
	return append(b, e.kind()...), true
}

func appendSize(b []byte, _ *View, e Entry) ([]byte, bool) {
	return strconv.AppendInt(b, e.Size(), 10), !e.IsDir()
}

// appendModify leaves out directories: their time would have to change whenever
// a name in them does (RFC 3659 7.5.3), which S3 keeps no account of.
func appendModify(b []byte, _ *View, e Entry) ([]byte, bool) {
	if e.IsDir() {
		return b, false
	}
	return AppendTimeVal(b, e.ModTime())
}

// appendCreate leaves out a time that is later than that of the fact "modify",
// as after MFMT, because RFC 3659 7.5.4 says that it never is.
func appendCreate(b []byte, _ *View, e Entry) ([]byte, bool) {
	object, ok := e.Sys().(objectInfo)
	if !ok || object.Created().After(e.ModTime()) {
		return b, false
	}
	return AppendTimeVal(b, object.Created())
}

// anyName stands for a name that no rule about the user's rights means: no
// character has these numbers.
const anyName = "\U0010ffff\U0010ffff"

// appendPerm writes what the user may do with the entry (RFC 3659 7.5.5): of a
// directory also what with the names in it, but for those that have rights of
// their own. The root can neither be deleted nor renamed.
func appendPerm(b []byte, v *View, e Entry) ([]byte, bool) {
	if v.Rights == nil {
		return b, false
	}
	name, directory := e.pathname(), e.IsDir()
	fixed := directory && name == "/"
	may, inside := v.Rights(name), vfs.Rights{}
	if directory {
		inside = v.Rights(path.Join(name, anyName))
	}
	changes := !directory && may.Write && !v.NoOverwrite
	for _, p := range []struct {
		letter byte
		set    bool
	}{
		{'a', changes},                // APPE
		{'c', inside.Write},           // STOR of a new name, STOU, RNTO
		{'d', !fixed && may.Delete},   // DELE or RMD
		{'e', directory},              // CWD
		{'f', !fixed && may.Rename},   // RNFR
		{'l', directory && may.List},  // LIST, NLST, MLSD
		{'m', inside.Mkdir},           // MKD
		{'p', inside.Delete},          // DELE and RMD of what is in it
		{'r', !directory && may.Read}, // RETR
		{'w', changes},                // STOR
	} {
		if p.set {
			b = append(b, p.letter)
		}
	}
	return b, true
}

// uniqueBytes of a hash tell one object from another: 16 letters, and as good
// as never the same twice.
const uniqueBytes = 12

// appendUnique writes a token for the object, whatever pathname leads to it
// (RFC 3659 7.5.2). It is made of bucket and key. A directory's ends with "/", so
// that it is none of the file of the same name.
func appendUnique(b []byte, v *View, e Entry) ([]byte, bool) {
	if v.ObjectURI == nil {
		return b, false
	}
	uri := v.ObjectURI(e.pathname())
	if uri == "" { // too long to be a file's
		return b, false
	}
	if e.IsDir() && !strings.HasSuffix(uri, "/") {
		uri += "/"
	}
	sum := sha256.Sum256([]byte(uri))
	return base64.RawURLEncoding.AppendEncode(b, sum[:uniqueBytes]), true
}

// noMediaType is what S3 says of an object that was stored without a type. It is
// none of IANA's.
const noMediaType = "binary/octet-stream"

// appendMediaType writes the type of a file's content without its parameters.
func appendMediaType(b []byte, _ *View, e Entry) ([]byte, bool) {
	object, ok := e.Sys().(objectInfo)
	if !ok || e.IsDir() {
		return b, false
	}
	mediaType, _, _ := mime.ParseMediaType(object.MediaType()) // wrong parameters are no matter
	if mediaType == noMediaType || !strings.Contains(mediaType, "/") || !IsToken(mediaType) {
		return b, false
	}
	return append(b, mediaType...), true
}

// appendCharset writes the charset in which the client is shown the name: UTF-8
// where the tenant's lacks a character of it. Bytes of a mirror have none.
func appendCharset(b []byte, v *View, e Entry) ([]byte, bool) {
	encoding := v.Charset(e.Dir)
	if encoding.Raw() {
		return b, false
	}
	beyondASCII := utf8.RuneCountInString(e.Name()) < len(e.Name())
	if shown, _ := encoding.Encode(e.Name()); beyondASCII && shown == e.Name() {
		encoding = nil
	}
	return append(b, encoding.DisplayName()...), true
}

// appendLang writes the language of the name, where the object tells. It must not
// be guessed (RFC 3659 7.5.6), and what Content-Language tells is another one.
func appendLang(b []byte, _ *View, e Entry) ([]byte, bool) {
	object, ok := e.Sys().(objectInfo)
	if !ok || object.NameLanguage() == "" {
		return b, false
	}
	tag, err := language.Parse(object.NameLanguage())
	return append(b, tag.String()...), err == nil
}

// IsToken tells whether a text is a token of RFC 3659 2.1, which all names of
// facts and most values are.
func IsToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && !isDigits(text[i:i+1]) && !strings.Contains(`,.:!@#$%^&()-_+?/\'"`, text[i:i+1]) {
			return false
		}
	}
	return text != ""
}

// Feature lists all facts as FEAT does (RFC 3659 7.8), with "*" behind those of
// facts.
func (facts Facts) Feature() string {
	var list strings.Builder
	for _, known := range allFacts() {
		list.WriteString(known.name)
		if facts.Has(known.name) {
			list.WriteByte('*')
		}
		list.WriteByte(';')
	}
	return list.String()
}

// ParseFacts reads the facts that OPTS MLST asks for, each followed by ";", in any case
// (RFC 3659 7.9). Unknown ones are ignored. It returns false for a malformed list.
func ParseFacts(list string) (Facts, bool) {
	names, ended := strings.CutSuffix(strings.ToLower(list), ";")
	asked := strings.Split(names, ";")
	if !ended || !allTokens(asked) {
		return nil, false
	}
	return slices.DeleteFunc(allFacts(), func(f fact) bool { return !slices.Contains(asked, f.name) }), true
}

// String lists the facts as the reply to OPTS MLST does (RFC 3659 7.9), each followed by ";".
func (facts Facts) String() string {
	var list strings.Builder
	for _, f := range facts {
		list.WriteString(f.name)
		list.WriteByte(';')
	}
	return list.String()
}

func allTokens(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !IsToken(text) })
}
