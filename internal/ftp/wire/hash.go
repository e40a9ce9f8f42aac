package wire

import (
	"slices"
	"strings"
)

// DefaultHash is the algorithm of HASH before OPTS HASH.
const DefaultHash = "SHA-256"

// hashAlgorithms returns the algorithms that the storage computes, in the order of FEAT. The names are registered
// with IANA, except CRC32.
func hashAlgorithms() []string { return []string{DefaultHash, "SHA-512", "SHA-1", "MD5", "CRC32"} }

// FindHash returns the name of an algorithm as HASH writes it, ignoring case. It returns false if the storage does
// not compute the algorithm.
func FindHash(name string) (algorithm string, ok bool) {
	for _, known := range hashAlgorithms() {
		if Equal(known, name) {
			return known, true
		}
	}
	return "", false
}

// HashFeature lists the algorithms like FEAT, with "*" after the current one (draft-ietf-ftpext2-hash, 3.1).
func HashFeature(current string) string {
	names := hashAlgorithms()
	names[slices.Index(names, current)] += "*"
	return strings.Join(names, ";")
}

// HashVerbs returns the commands that are older than HASH, in the order of FEAT.
func HashVerbs() []string { return []string{"XCRC", "XMD5", "XSHA", "XSHA1", "XSHA256", "XSHA512"} }

// HashOfVerb returns the algorithm of one of [HashVerbs].
func HashOfVerb(verb string) string {
	switch verb {
	case "XSHA256":
		return "SHA-256"
	case "XSHA512":
		return "SHA-512"
	case "XSHA", "XSHA1":
		return "SHA-1"
	case "XMD5":
		return "MD5"
	}
	return "CRC32"
}
