package s3object

import (
	"net/url"
	"path"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// MaxKeyBytes is the length of the longest key that S3 stores, in bytes of UTF-8.
const MaxKeyBytes = 1024

// Reserved is a key segment that is reserved for the driver itself, for example for the upload journal. Pathnames
// cannot contain it.
const Reserved = ".babelftp"

// IsReserved reports whether a key is reserved for the driver itself, in a file system with any prefix.
func IsReserved(key string) bool {
	return strings.Contains(Separator+key, Separator+Reserved+Separator)
}

// Separator separates the segments of pathnames and keys. It is the delimiter of listings.
const Separator = "/"

// A KeySpace maps pathnames to keys, and is the only place that does. Its value is the prefix of all its keys. The
// mounts of package view decide which KeySpace a pathname belongs to.
//
// The key is the prefix followed by the cleaned pathname without its leading slash, byte for byte. Nothing is escaped,
// folded or normalized. So other S3 clients see the same names, and two names never have the same key. The file "/a/b"
// has the key "a/b". The directory "/a/b" consists of all keys that begin with "a/b/", with or without an empty object
// "a/b/" that marks it.
//
// A pathname must be valid UTF-8 (RFC 3629 section 4: no surrogates, nothing above U+10FFFF, shortest forms) and must
// not contain NUL or the segment ".babelftp". Conversely, some keys have no pathname: keys with an empty segment
// ("a//b", "/a"), with the segment ".", ".." or ".babelftp", with invalid UTF-8 or with NUL. Listings omit them, but a
// directory that contains only such keys is not empty. Renaming or removing a directory with its content includes them,
// except for keys with ".babelftp", which belong to the server.
type KeySpace string

// A nameError explains why a name has no key. Its kind is EILSEQ, whose own text mentions only encodings.
type nameError string

func (e nameError) Error() string { return string(e) }

func (e nameError) Unwrap() error { return syscall.EILSEQ }

// Key returns the key of the file with this name. Names are relative to the root, with or without a leading slash. The
// key of the root is the prefix itself.
//
// The error is EILSEQ if the name is not valid UTF-8, contains NUL or has the reserved segment, and ENAMETOOLONG if the
// key is longer than S3 allows.
func (s KeySpace) Key(name string) (string, error) {
	name = path.Clean(Separator + name)
	switch {
	case !utf8.ValidString(name):
		return "", nameError("invalid name: not UTF-8")
	case strings.IndexByte(name, 0) >= 0:
		return "", nameError("invalid name: contains NUL")
	case IsReserved(name + Separator):
		return "", &s3error.ReservedError{Segment: Reserved}
	}
	key := string(s) + strings.TrimPrefix(name, Separator)
	if len(key) > MaxKeyBytes {
		return "", syscall.ENAMETOOLONG
	}
	return key, nil
}

// Base returns the last segment of the pathname of a key, or "/" for the root.
func (s KeySpace) Base(key string) string {
	return path.Base(Separator + strings.TrimPrefix(key, string(s)))
}

// IsRoot reports whether a key is the key of the root.
func (s KeySpace) IsRoot(key string) bool { return key == string(s) }

// Directory returns the prefix of the keys in a directory, which is also the key of its marker.
func (s KeySpace) Directory(key string) string {
	if s.IsRoot(key) {
		return key
	}
	return key + Separator
}

// Representable reports whether a segment of a key can be a segment of a pathname.
func Representable(segment string) bool {
	switch segment {
	case "", ".", "..", Reserved:
		return false
	}
	return utf8.ValidString(segment) && strings.IndexByte(segment, 0) < 0
}

// PercentEncode encodes all characters of a key except "/" and the unreserved characters of RFC 3986 section 2.3. It
// also encodes a space as "%20", because some servers read "+" as a space.
func PercentEncode(key string) string {
	return strings.NewReplacer("+", "%20", "%2F", Separator).Replace(url.QueryEscape(key))
}

// IsXMLText reports whether a key can be sent in XML unchanged. Control characters count as unsafe, because servers
// treat them differently.
func IsXMLText(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool {
		return unicode.IsControl(r) || r == '\ufffe' || r == '\uffff' || r == utf8.RuneError
	})
}
