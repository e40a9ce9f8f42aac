package control

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

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/vfs"
	"github.com/babelftp/babelftp/internal/wire"
)

// An entry is a file or directory as MLST and MLSD tell of it.
type entry struct {
	fs.FileInfo
	dir string // absolute pathname of the directory that the name is in
}

// pathname is the entry's own, absolute.
func (e entry) pathname() string { return path.Join(e.dir, e.Name()) }

// The names in a directory of the directory itself and of its parent. No key is
// called so.
const (
	thisDirectory   = "."
	parentDirectory = ".."
)

// kind is the value of the fact "type" (RFC 3659 7.5.1).
func (e entry) kind() string {
	switch {
	case e.Name() == thisDirectory:
		return "cdir"
	case e.Name() == parentDirectory:
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

// A fact is one of MLST's (RFC 3659 7.5).
type fact struct {
	name      string
	byDefault bool // shown until OPTS MLST
	// appendTo writes the value of an entry, or returns false when it has none.
	appendTo func(b []byte, s *session, e entry) ([]byte, bool)
}

// allFacts are the facts that this server knows, in the order of FEAT.
//
// Lang and charset are not those of the content: RFC 3659 7.5.6 and 7.5.9 say
// that they are the name's.
func allFacts() []fact {
	return []fact{
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

// defaultFacts are those that MLST and MLSD show until OPTS MLST.
func defaultFacts() []fact {
	return slices.DeleteFunc(allFacts(), func(f fact) bool { return !f.byDefault })
}

// shows tells whether MLST and MLSD show a fact.
func (s *session) shows(name string) bool {
	return slices.ContainsFunc(s.facts, func(f fact) bool { return f.name == name })
}

// appendFacts writes the facts of an entry, each as "size=3;", and the SP before
// the name.
func (s *session) appendFacts(b []byte, e entry) []byte {
	for _, f := range s.facts {
		before := len(b)
		value, ok := f.appendTo(append(append(b, f.name...), '='), s, e)
		if !ok {
			b = b[:before]
			continue
		}
		b = append(value, ';')
	}
	return append(b, ' ')
}

func appendType(b []byte, _ *session, e entry) ([]byte, bool) {
	return append(b, e.kind()...), true
}

func appendSize(b []byte, _ *session, e entry) ([]byte, bool) {
	return strconv.AppendInt(b, e.Size(), 10), !e.IsDir()
}

// appendModify leaves out directories: their time would have to change whenever
// a name in them does (RFC 3659 7.5.3), which S3 keeps no account of.
func appendModify(b []byte, _ *session, e entry) ([]byte, bool) {
	if e.IsDir() {
		return b, false
	}
	return appendTimeVal(b, e.ModTime())
}

// appendCreate leaves out a time that is later than that of the fact "modify",
// as after MFMT, because RFC 3659 7.5.4 says that it never is.
func appendCreate(b []byte, _ *session, e entry) ([]byte, bool) {
	object, ok := e.Sys().(objectInfo)
	if !ok || object.Created().After(e.ModTime()) {
		return b, false
	}
	return appendTimeVal(b, object.Created())
}

// anyName stands for a name that no rule about the user's rights means: no
// character has these numbers.
const anyName = "\U0010ffff\U0010ffff"

// appendPerm writes what the user may do with the entry (RFC 3659 7.5.5): of a
// directory also what with the names in it, but for those that have rights of
// their own. The root can neither be deleted nor renamed.
func appendPerm(b []byte, s *session, e entry) ([]byte, bool) {
	if s.login.Rights == nil {
		return b, false
	}
	name, directory := e.pathname(), e.IsDir()
	fixed := directory && name == "/"
	may, inside := s.login.Rights(name), vfs.Rights{}
	if directory {
		inside = s.login.Rights(path.Join(name, anyName))
	}
	changes := !directory && may.Write && !s.login.NoOverwrite
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
func appendUnique(b []byte, s *session, e entry) ([]byte, bool) {
	if s.login.ObjectURI == nil {
		return b, false
	}
	uri := s.login.ObjectURI(e.pathname())
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
func appendMediaType(b []byte, _ *session, e entry) ([]byte, bool) {
	object, ok := e.Sys().(objectInfo)
	if !ok || e.IsDir() {
		return b, false
	}
	mediaType, _, _ := mime.ParseMediaType(object.MediaType()) // wrong parameters are no matter
	if mediaType == noMediaType || !strings.Contains(mediaType, "/") || !isToken(mediaType) {
		return b, false
	}
	return append(b, mediaType...), true
}

// appendCharset writes the charset in which the client is shown the name: UTF-8
// where the tenant's lacks a character of it. Bytes of a mirror have none.
func appendCharset(b []byte, s *session, e entry) ([]byte, bool) {
	charset := s.shownEncoding(e.dir)
	if charset.Raw() {
		return b, false
	}
	beyondASCII := utf8.RuneCountInString(e.Name()) < len(e.Name())
	if shown, _ := charset.Encode(e.Name()); beyondASCII && shown == e.Name() {
		charset = nil
	}
	return append(b, charsetName(charset)...), true
}

// appendLang writes the language of the name, where the object tells. It must not
// be guessed (RFC 3659 7.5.6), and what Content-Language tells is another one.
func appendLang(b []byte, _ *session, e entry) ([]byte, bool) {
	object, ok := e.Sys().(objectInfo)
	if !ok || object.NameLanguage() == "" {
		return b, false
	}
	tag, err := language.Parse(object.NameLanguage())
	return append(b, tag.String()...), err == nil
}

// isToken tells whether a text is a token of RFC 3659 2.1, which all names of
// facts and most values are.
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && !isNumber(text[i:i+1]) && !strings.Contains(`,.:!@#$%^&()-_+?/\'"`, text[i:i+1]) {
			return false
		}
	}
	return text != ""
}

// factList names all facts, with "*" behind those that are shown (RFC 3659 7.8).
func (s *session) factList() string {
	var list strings.Builder
	for _, known := range allFacts() {
		list.WriteString(known.name)
		if s.shows(known.name) {
			list.WriteByte('*')
		}
		list.WriteByte(';')
	}
	return list.String()
}

// optsMLST is OPTS MLST: it chooses the facts of MLST and MLSD. Unknown ones are
// ignored, and the reply names what is left; after a wrong list nothing changes
// (RFC 3659 7.9).
func (s *session) optsMLST(options string, hasOptions bool) {
	var asked []string
	if hasOptions {
		list, ended := strings.CutSuffix(strings.ToLower(options), ";")
		asked = strings.Split(list, ";")
		if !ended || !allTokens(asked) {
			s.say(501, i18n.OptionUnknown, "OPTS MLST")
			return
		}
	}
	s.facts = slices.DeleteFunc(allFacts(), func(f fact) bool { return !slices.Contains(asked, f.name) })
	line := "MLST OPTS"
	for i, f := range s.facts {
		if i == 0 {
			line += " "
		}
		line += f.name + ";"
	}
	s.send(wire.NewReply(200, line))
}

func allTokens(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !isToken(text) })
}

// mlst is MLST (RFC 3659 7): one entry, on the control connection, with the
// pathname that was asked for.
func (s *session) mlst(arg string) {
	name, err := s.resolve(arg)
	if err != nil {
		s.fail(err)
		return
	}
	if arg == "" {
		arg = s.shown(name)
	}
	var info fs.FileInfo
	err = s.lookup(name, func(name string) (err error) {
		info, err = s.stats(name)
		return err
	})
	if err != nil {
		s.fail(err)
		return
	}
	line := append(s.appendFacts([]byte(" "), entry{info, path.Dir(s.located)}), arg...)
	s.send(wire.NewReply(250, s.text(i18n.FileDetails), string(line), s.text(i18n.DetailsEnd)))
}

// stats looks for a file or a directory; the root needs no look.
func (s *session) stats(name string) (fs.FileInfo, error) {
	if name == "/" {
		return vfs.Directory("/"), nil
	}
	return s.orPendingUpload(name, s.login.Storage.Stat)
}
