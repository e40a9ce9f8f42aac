package list

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

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// A Client is the client that a listing is written for.
type Client struct {
	// Names translates the names of entries for the client.
	Names pathname.Codec
	// View has the user's rights and the URIs of objects, for the facts "perm" and "unique".
	// It makes no request for them.
	View *view.View
	// NoOverwrite says that the storage refuses to replace files and to append to them.
	NoOverwrite bool
	// Started is when the server started, which directories show where no other time is
	// known. Clients take a time that is missing for one in 1970, or fail.
	Started time.Time
}

// Dated returns the entry with a time, also for a directory without a marker. S3 has no
// time for that, so it shows the newest time of the entries before it, if there is one.
func (c *Client) Dated(info fs.FileInfo, newest time.Time) fs.FileInfo {
	if !info.IsDir() || !info.ModTime().IsZero() {
		return info
	}
	if newest.IsZero() {
		newest = c.Started
	}
	return dated{info, newest}
}

// A dated directory has no time of its own.
type dated struct {
	fs.FileInfo
	time time.Time
}

func (d dated) ModTime() time.Time { return d.time }

// An Entry is a file or directory that MLST or MLSD describes.
type Entry struct {
	fs.FileInfo
	Dir string // absolute pathname of the directory that the name is in
}

// pathname returns the absolute pathname of the entry.
func (e Entry) pathname() string { return path.Join(e.Dir, e.Name()) }

// The names that a listing gives the directory itself and its parent. No key has such
// a name.
const (
	thisDirectory   = "."
	parentDirectory = ".."
)

// kind is the value of the fact "type" (RFC 3659 7.5.1).
func (e Entry) kind() string {
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

// Facts are the facts that MLST and MLSD show, in this order.
type Facts []fact

// A fact is one of MLST's (RFC 3659 7.5).
type fact struct {
	name      string
	byDefault bool // shown until OPTS MLST
	// appendTo writes the value of an entry, or returns false when it has none.
	appendTo func(b []byte, c *Client, e Entry) ([]byte, bool)
}

// allFacts returns the facts that this server knows, in the order of FEAT.
//
// The facts "lang" and "charset" are about the name and not about the content (RFC
// 3659 7.5.6 and 7.5.9).
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
		{"x.archive", true, appendArchive},
	}
}

// DefaultFacts returns the facts that MLST and MLSD show until OPTS MLST.
func DefaultFacts() Facts {
	return slices.DeleteFunc(allFacts(), func(f fact) bool { return !f.byDefault })
}

// Has reports whether a fact of this name is among them.
func (facts Facts) Has(name string) bool {
	return slices.ContainsFunc(facts, func(f fact) bool { return f.name == name })
}

// Append writes the facts of an entry, each as "size=3;", and the SP before the
// name.
func (facts Facts) Append(b []byte, c *Client, e Entry) []byte {
	for _, f := range facts {
		before := len(b)
		value, ok := f.appendTo(append(append(b, f.name...), '='), c, e)
		if !ok {
			b = b[:before]
			continue
		}
		b = append(value, ';')
	}
	return append(b, ' ')
}

func appendType(b []byte, _ *Client, e Entry) ([]byte, bool) {
	return append(b, e.kind()...), true
}

func appendSize(b []byte, _ *Client, e Entry) ([]byte, bool) {
	return strconv.AppendInt(b, e.Size(), 10), !e.IsDir()
}

// appendModify gives directories a time too, though it does not change whenever a name in
// them changes (RFC 3659 7.5.3): S3 does not record that.
func appendModify(b []byte, _ *Client, e Entry) ([]byte, bool) {
	return wire.AppendTimeVal(b, e.ModTime())
}

// appendCreate leaves out a time that is later than the fact "modify", as after MFMT,
// because RFC 3659 7.5.4 forbids that.
func appendCreate(b []byte, _ *Client, e Entry) ([]byte, bool) {
	object, ok := e.Sys().(contract.Object)
	if !ok || object.Created().After(e.ModTime()) {
		return b, false
	}
	return wire.AppendTimeVal(b, object.Created())
}

// anyName stands for a name that no rule about the user's rights mentions, because no
// character has these numbers.
const anyName = "\U0010ffff\U0010ffff"

// appendPerm writes what the user may do with the entry (RFC 3659 7.5.5). For a
// directory that includes the names in it, except those that have rights of their own.
// The root can neither be deleted nor renamed.
func appendPerm(b []byte, c *Client, e Entry) ([]byte, bool) {
	name, directory := e.pathname(), e.IsDir()
	fixed := directory && name == "/"
	rights, inside := c.View.Rights(name), view.Rights{}
	if directory {
		inside = c.View.Rights(path.Join(name, anyName))
	}
	changes := !directory && rights.Write && !c.NoOverwrite
	for _, p := range []struct {
		letter byte
		set    bool
	}{
		{'a', changes},                   // APPE
		{'c', inside.Write},              // STOR of a new name, STOU, RNTO
		{'d', !fixed && rights.Delete},   // DELE or RMD
		{'e', directory},                 // CWD
		{'f', !fixed && rights.Rename},   // RNFR
		{'l', directory && rights.List},  // LIST, NLST, MLSD
		{'m', inside.Mkdir},              // MKD
		{'p', inside.Delete},             // DELE and RMD of what is in it
		{'r', !directory && rights.Read}, // RETR
		{'w', changes},                   // STOR
	} {
		if p.set {
			b = append(b, p.letter)
		}
	}
	return b, true
}

// uniqueBytes is how many bytes of a hash identify an object: 16 letters, with a
// negligible risk of collision.
const uniqueBytes = 12

// appendUnique writes a token for the object (RFC 3659 7.5.2). It is made of bucket and
// key, so it is the same for every pathname of the object. The URI of a directory ends
// with "/", so that it differs from that of a file of the same name.
func appendUnique(b []byte, c *Client, e Entry) ([]byte, bool) {
	uri := c.View.URI(e.pathname())
	if uri == "" { // the name is too long for a key
		return b, false
	}
	if e.IsDir() && !strings.HasSuffix(uri, "/") {
		uri += "/"
	}
	sum := sha256.Sum256([]byte(uri))
	return base64.RawURLEncoding.AppendEncode(b, sum[:uniqueBytes]), true
}

// noMediaType is the type that S3 gives an object that was stored without one. IANA
// has not registered it.
const noMediaType = "binary/octet-stream"

// appendMediaType writes the type of a file's content without its parameters.
func appendMediaType(b []byte, _ *Client, e Entry) ([]byte, bool) {
	object, ok := e.Sys().(contract.Object)
	if !ok || e.IsDir() {
		return b, false
	}
	mediaType, _, _ := mime.ParseMediaType(object.MediaType()) // malformed parameters do not matter
	if mediaType == noMediaType || !strings.Contains(mediaType, "/") || !wire.IsToken(mediaType) {
		return b, false
	}
	return append(b, mediaType...), true
}

// appendCharset writes the charset in which the client gets the name. That is UTF-8 if
// the charset of the tenant lacks a character. The bytes of a mirror have no charset.
func appendCharset(b []byte, c *Client, e Entry) ([]byte, bool) {
	charset, ok := c.Names.CharsetOf(e.Dir, e.Name())
	return append(b, charset...), ok
}

// appendArchive writes the storage class of a file that S3 must restore from its archive before it can be read. The
// fact is a local one (RFC 3659 7.5), which clients pass over that do not know it.
func appendArchive(b []byte, _ *Client, e Entry) ([]byte, bool) {
	object, ok := e.Sys().(contract.Object)
	if !ok || object.Archive() == "" {
		return b, false
	}
	return append(b, object.Archive()...), true
}

// appendLang writes the language of the name if the object has it. A server must not
// guess it (RFC 3659 7.5.6), and Content-Language is that of the content.
func appendLang(b []byte, _ *Client, e Entry) ([]byte, bool) {
	object, ok := e.Sys().(contract.Object)
	if !ok || object.NameLanguage() == "" {
		return b, false
	}
	tag, err := language.Parse(object.NameLanguage())
	return append(b, tag.String()...), err == nil
}

// Feature lists all facts that the server knows as FEAT does (RFC 3659 7.8), with "*"
// behind the selected ones.
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

// ParseFacts reads the argument of OPTS MLST: names of facts in any case, each followed
// by ";" (RFC 3659 7.9). It ignores unknown facts, and returns false for a malformed
// list.
func ParseFacts(list string) (Facts, bool) {
	names, ended := strings.CutSuffix(strings.ToLower(list), ";")
	asked := strings.Split(names, ";")
	if !ended || !allTokens(asked) {
		return nil, false
	}
	return slices.DeleteFunc(allFacts(), func(f fact) bool { return !slices.Contains(asked, f.name) }), true
}

// String lists the facts as the reply to OPTS MLST does (RFC 3659 7.9), each followed
// by ";".
func (facts Facts) String() string {
	var list strings.Builder
	for _, f := range facts {
		list.WriteString(f.name)
		list.WriteByte(';')
	}
	return list.String()
}

func allTokens(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !wire.IsToken(text) })
}
