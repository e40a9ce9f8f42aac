// Package passwordhash hashes passwords, and compares them with hashes of this server and of others: argon2id (RFC
// 9106), bcrypt, and the SHA-512 and SHA-256 of crypt(3), which vsftpd and ProFTPD have. A hash is the text that a
// configuration holds.
//
// Passwords are compared in the form of RFC 8265, section 4.2.
package passwordhash

import (
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
)

// A hash is a password hash that was read.
type hash interface {
	// problem is why the hash cannot be used, empty for a good one.
	problem() string
	// kind is what a comparison costs, but for its rounds: of two hashes of a kind, the one with more rounds costs
	// more.
	kind() string
	rounds() int
	// spend costs what so many rounds of a comparison do. A comparison is never a part of one where there is one
	// round only.
	spend(password string, rounds int)
	matches(password string) bool
}

// errUnknown is the error for a text that is a hash of no known kind.
var errUnknown = errors.New("is not a hash of argon2id, bcrypt, SHA-512 crypt or SHA-256 crypt")

// read reads a hash.
func read(text string) (hash, error) {
	kind, _, _ := strings.Cut(strings.TrimPrefix(text, "$"), "$")
	switch {
	case !strings.HasPrefix(text, "$"):
		return nil, errors.New("is not a password hash; passwords are not kept in plain text")
	case kind == "argon2id":
		return readArgon2id(text)
	case kind == "2a", kind == "2b", kind == "2y":
		return readBcrypt(text)
	case kind == "5", kind == "6":
		return readSHACrypt(text)
	}
	return nil, errUnknown
}

// Problem is why a text, which it does not show, is no hash that passwords can be compared with, empty for a good one.
func Problem(text string) string {
	h, err := read(text)
	if err != nil {
		return err.Error()
	}
	return h.problem()
}

// isCrypt64 reports whether a text has only the 64 characters in which crypt(3) and bcrypt write bytes.
func isCrypt64(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r != '.' && r != '/' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// prepare gives a password the one form that RFC 8265, section 4.2 asks for, so that the é of one keyboard is that of
// another. What that profile does not allow is taken as it is. So is a password that is not UTF-8, in which the
// profile would make all other bytes equal.
func prepare(password string) string {
	prepared, err := precis.OpaqueString.String(password)
	if err != nil || !utf8.ValidString(password) {
		return password
	}
	return prepared
}
