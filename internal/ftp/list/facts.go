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

// A Client describes the client that gets a listing.
type Client struct {
	// Names encodes the names of entries for the client.
	Names pathname.Codec
	// View has the rights of the user and the URIs of objects, for the facts "perm" and "unique". These need no
	// requests.
	View *view.View
	// NoOverwrite means that the storage refuses to replace or append to files.
	NoOverwrite bool
	// Started is the time at which the server started. Directories without any other time show it, because clients
	// treat a missing time as 1970, or fail.
	Started time.Time
}

// Dated returns the entry with a time, even if it is a directory without a marker, for which S3 has no time. Such
// a directory shows the newest time of the preceding entries, if any.
func (c *Client) Dated(info fs.FileInfo, newest time.Time) fs.FileInfo {
	if !info.IsDir() || !info.ModTime().IsZero() {
		return info
	}
	if newest.IsZero() {
		newest = c.Started
	}
	return dated{info, newest}
}

// A dated entry is a directory without a time of its own.
type dated struct {
	fs.FileInfo
	time time.Time
}

func (d dated) ModTime() time.Time { return d.time }

// An Entry is a file or directory in a listing.
type Entry struct {
	fs.FileInfo
	Dir string // absolute pathname of the directory that contains the name
}

// pathname returns the absolute pathname of the entry.
func (e Entry) pathname() string { return path.Join(e.Dir, e.Name()) }

// Names of the listed directory and its parent in a listing. No key has such a name.
const (
	thisDirectory   = "."
	parentDirectory = ".."
)

// kind returns the value of the fact "type" (RFC 3659, 7.5.1).
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

// Facts are the facts shown by MLST and MLSD, in this order.
type Facts []fact

// A fact is a fact of MLST (RFC 3659, 7.5).
type fact struct {
	name      string
	byDefault bool // shown before OPTS MLST
	// appendTo appends the value for an entry. It returns false if the entry has no such fact.
	appendTo func(b []byte, c *Client, e Entry) ([]byte, bool)
}

// allFacts returns the supported facts in the order of FEAT.
//
// The facts "lang" and "charset" describe the name, not the content (RFC 3659, 7.5.6 and 7.5.9).
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

// DefaultFacts returns the facts that MLST and MLSD show before OPTS MLST.
func DefaultFacts() Facts {
	return slices.DeleteFunc(allFacts(), func(f fact) bool { return !f.byDefault })
}

// Has reports whether facts contains a fact with this name.
func (facts Facts) Has(name string) bool {
	return slices.ContainsFunc(facts, func(f fact) bool { return f.name == name })
}

// Append appends the facts of an entry, each as "size=3;", and the space before the name.
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

// appendModify appends the modification time. Directories have one too, but it does not change with their entries
// (RFC 3659, 7.5.3), because S3 does not record that.
func appendModify(b []byte, _ *Client, e Entry) ([]byte, bool) {
	return wire.AppendTimeVal(b, e.ModTime())
}

// appendCreate omits a creation time after the fact "modify", which MFMT can cause, because RFC 3659, 7.5.4
// forbids it.
func appendCreate(b []byte, _ *Client, e Entry) ([]byte, bool) {
	object, ok := e.Sys().(contract.Object)
	if !ok || object.Created().After(e.ModTime()) {
		return b, false
	}
	return wire.AppendTimeVal(b, object.Created())
}

// anyName is a name that no rule about rights matches, because Unicode never assigns this code point.
const anyName = "\U0010ffff\U0010ffff"

// appendPerm appends what the user may do with the entry (RFC 3659, 7.5.5). For a directory that includes its
// entries, except entries with rights of their own. The root can neither be deleted nor renamed.
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
		{'p', inside.Delete},             // DELE and RMD of its entries
		{'r', !directory && rights.Read}, // RETR
		{'w', changes},                   // STOR
	} {
		if p.set {
			b = append(b, p.letter)
		}
	}
	return b, true
}

// uniqueBytes is the number of bytes of a hash that identify an object: 16 letters, with a negligible risk of
// collisions.
const uniqueBytes = 12

// appendUnique appends a token for the object (RFC 3659, 7.5.2). It is made from bucket and key, so it is the same
// for every pathname of the object. The URI of a directory ends with "/", so that it differs from a file with the
// same name.
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

// noMediaType is the type that S3 gives to an object that was stored without one. It is not registered with IANA.
const noMediaType = "binary/octet-stream"

// appendMediaType appends the media type of the content without parameters.
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

// appendCharset appends the charset in which the client gets the name, which is UTF-8 if the charset of the tenant
// lacks a character. Names of a mirror are bytes without a charset.
func appendCharset(b []byte, c *Client, e Entry) ([]byte, bool) {
	charset, ok := c.Names.CharsetOf(e.Dir, e.Name())
	return append(b, charset...), ok
}

// appendArchive appends the storage class of a file that S3 must restore from its archive before it can be read.
// The fact is a local one (RFC 3659, 7.5), which other clients ignore.
func appendArchive(b []byte, _ *Client, e Entry) ([]byte, bool) {
	object, ok := e.Sys().(contract.Object)
	if !ok || object.Archive() == "" {
		return b, false
	}
	return append(b, object.Archive()...), true
}

// appendLang appends the language of the name if the object has one. A server must not guess it (RFC 3659, 7.5.6),
// and Content-Language describes the content.
func appendLang(b []byte, _ *Client, e Entry) ([]byte, bool) {
	object, ok := e.Sys().(contract.Object)
	if !ok || object.NameLanguage() == "" {
		return b, false
	}
	tag, err := language.Parse(object.NameLanguage())
	return append(b, tag.String()...), err == nil
}

// Feature lists all supported facts like FEAT (RFC 3659, 7.8), with "*" after each selected fact.
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

// ParseFacts parses the argument of OPTS MLST: names of facts in any case, each followed by ";" (RFC 3659, 7.9).
// It ignores unknown facts, and returns false if the list is malformed.
func ParseFacts(list string) (Facts, bool) {
	names, ended := strings.CutSuffix(strings.ToLower(list), ";")
	wanted := strings.Split(names, ";")
	if !ended || !allTokens(wanted) {
		return nil, false
	}
	return slices.DeleteFunc(allFacts(), func(f fact) bool { return !slices.Contains(wanted, f.name) }), true
}

// String lists the facts like the reply to OPTS MLST (RFC 3659, 7.9), each followed by ";".
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
