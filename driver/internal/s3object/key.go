package s3object

import (
	"net/url"
	"path"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// MaxKeyBytes is the longest key that S3 stores, in bytes of UTF-8.
const MaxKeyBytes = 1024

// Reserved is the segment of the keys that are for the driver itself, such as the upload journal. No pathname has it.
const Reserved = ".babelftp"

// IsReserved tells whether a key is one of those that are for the driver itself, in a file system of any prefix.
func IsReserved(key string) bool {
	return strings.Contains(Separator+key, Separator+Reserved+Separator)
}

// Separator stands between the segments of a pathname and of a key, and is the delimiter of listings.
const Separator = "/"

// A KeySpace maps pathnames to keys; no other place does. Which KeySpace a name belongs to, and its prefix,
// is for the mounts of the view to say.
//
// It is the prefix that all of its keys start with. What follows the prefix is the cleaned pathname without its
// leading slash, byte for byte. Nothing is escaped, folded or normalised. So other S3 clients see the same names, and
// two names are never one key. The file "/a/b" is the key "a/b"; the directory "/a/b" is every key that starts with
// "a/b/", with or without an empty object "a/b/" that marks it.
//
// A pathname must be UTF-8 as RFC 3629 section 4 defines it (no surrogates, nothing above U+10FFFF, shortest forms)
// and hold no NUL and no segment ".babelftp". The other way round, some keys have no pathname: those with an empty
// segment ("a//b", "/a"), with a segment "." or ".." or ".babelftp", with invalid UTF-8 or NUL. Listings leave them
// out; a directory that holds only such keys is not empty. To rename it or to remove it with all its content takes
// them along, but for those with ".babelftp", which belong to the server itself.
type KeySpace string

// A nameError says why a name has no key. It is an EILSEQ, whose own text speaks of encodings only.
type nameError string

func (e nameError) Error() string { return string(e) }

func (e nameError) Unwrap() error { return syscall.EILSEQ }

// Key returns the key of the file called name. A name is taken from the root, whether or not it begins with a slash.
// The key of the root is the prefix itself.
//
// The error is EILSEQ for a name that is no valid UTF-8, holds a NUL or has the reserved segment, ENAMETOOLONG for
// one whose key S3 would not store.
func (s KeySpace) Key(name string) (string, error) {
	name = path.Clean(Separator + name)
	switch {
	case !utf8.ValidString(name):
		return "", nameError("invalid name: not UTF-8")
	case strings.IndexByte(name, 0) >= 0:
		return "", nameError("invalid name: contains NUL")
	case IsReserved(name + Separator):
		return "", nameError("invalid name: " + Reserved + " is reserved for the server")
	}
	key := string(s) + strings.TrimPrefix(name, Separator)
	if len(key) > MaxKeyBytes {
		return "", syscall.ENAMETOOLONG
	}
	return key, nil
}

// Base is the last segment of the pathname of a key, and "/" for the root.
func (s KeySpace) Base(key string) string {
	return path.Base(Separator + strings.TrimPrefix(key, string(s)))
}

// IsRoot tells whether a key is the one of the root.
func (s KeySpace) IsRoot(key string) bool { return key == string(s) }

// Directory returns what the keys in the directory of a key start with. It is the key of the directory's marker as
// well.
func (s KeySpace) Directory(key string) string {
	if s.IsRoot(key) {
		return key
	}
	return key + Separator
}

// Representable tells whether a segment of a key can be a segment of a pathname.
func Representable(segment string) bool {
	switch segment {
	case "", ".", "..", Reserved:
		return false
	}
	return utf8.ValidString(segment) && strings.IndexByte(segment, 0) < 0
}

// PercentEncode writes a key for a place where only the unreserved characters of RFC 3986 section 2.3 and "/" stand
// for themselves, nor "+", which some servers read as a space.
func PercentEncode(key string) string {
	return strings.NewReplacer("+", "%20", "%2F", Separator).Replace(url.QueryEscape(key))
}

// IsXMLText tells whether a key comes through XML unchanged. Control characters might, but servers differ in that.
func IsXMLText(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool {
		return unicode.IsControl(r) || r == '\ufffe' || r == '\uffff' || r == utf8.RuneError
	})
}
