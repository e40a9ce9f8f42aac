package driver

import (
	"path"
	"strings"
	"syscall"
	"unicode/utf8"
)

// maxKeyBytes is the longest key that S3 stores, in bytes of UTF-8.
const maxKeyBytes = 1024

// reserved is the segment of the keys that are for the driver itself, the records of a [Ledger]. No pathname has it.
const reserved = ".babelftp"

// isReserved tells whether a key is one of those that are for the driver itself, in a file system of any prefix.
func isReserved(key string) bool {
	return strings.Contains(separator+key, separator+reserved+separator)
}

// separator stands between the segments of a pathname and of a key, and is the delimiter of listings.
const separator = "/"

// A keyspace maps pathnames to keys and back; no other place does.
//
// It is the prefix that all of its keys start with. What follows the prefix is the cleaned pathname without its leading slash,
// byte for byte: nothing is escaped, folded or normalised, so that other S3 clients see the same names and two names are never
// one key. The file "/a/b" is the key "a/b"; the directory "/a/b" is every key that starts with "a/b/", with or without an
// empty object "a/b/" that marks it.
//
// A pathname must be UTF-8 as RFC 3629 section 4 defines it (no surrogates, nothing above U+10FFFF, shortest forms) and hold no
// NUL and no segment ".babelftp". The other way round, some keys have no pathname: those with an empty segment ("a//b", "/a"), with
// a segment "." or ".." or ".babelftp", with invalid UTF-8 or NUL. Listings leave them out; a directory that holds only such keys is not empty, and to rename it or
// to remove it with all its content takes them along.
type keyspace string

// key returns the key of the file called name. A name is taken from the root, whether or not it begins with a slash. The key of
// the root is the prefix itself.
//
// The error is EILSEQ for a name that is no valid UTF-8, holds a NUL or has the reserved segment, ENAMETOOLONG for one whose key S3
// would not store.
func (k keyspace) key(name string) (string, error) {
	name = path.Clean(separator + name)
	if !utf8.ValidString(name) || strings.IndexByte(name, 0) >= 0 || isReserved(name+separator) {
		return "", syscall.EILSEQ
	}
	key := string(k) + strings.TrimPrefix(name, separator)
	if len(key) > maxKeyBytes {
		return "", syscall.ENAMETOOLONG
	}
	return key, nil
}

// name is the reverse of key: the absolute pathname of a key, also of the key of a marker, or false when it has none.
func (k keyspace) name(key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, string(k))
	if !ok {
		return "", false
	}
	if k.isRoot(key) {
		return separator, true
	}
	rest = strings.TrimSuffix(rest, separator)
	for segment := range strings.SplitSeq(rest, separator) {
		if !nameable(segment) {
			return "", false
		}
	}
	return separator + rest, true
}

// base is the last segment of the pathname of a key, and "/" for the root.
func (k keyspace) base(key string) string {
	return path.Base(separator + strings.TrimPrefix(key, string(k)))
}

// isRoot tells whether a key is the one of the root.
func (k keyspace) isRoot(key string) bool { return key == string(k) }

// directory returns what the keys in the directory of a key start with. It is the key of the directory's marker as well.
func (k keyspace) directory(key string) string {
	if k.isRoot(key) {
		return key
	}
	return key + separator
}

// nameable tells whether a segment of a key can be a segment of a pathname.
func nameable(segment string) bool {
	switch segment {
	case "", ".", "..", reserved:
		return false
	}
	return utf8.ValidString(segment) && strings.IndexByte(segment, 0) < 0
}
