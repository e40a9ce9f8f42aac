// Package passwordhash hashes passwords and verifies them. [New] returns argon2id hashes (RFC 9106). A [Set] verifies
// passwords against argon2id, bcrypt, and the yescrypt, SHA-512 and SHA-256 hashes of crypt(3), which vsftpd and
// ProFTPD use. A hash is the text in the configuration; [Problem] checks it.
//
// Passwords are normalized as described in RFC 8265, section 4.2, before they are hashed or compared.
package passwordhash

import (
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/secure/precis"
)

// A hash is a parsed password hash.
type hash interface {
	// problem returns why the hash cannot be used, or "" for a valid hash.
	problem() string
	// kind identifies everything that determines the cost of a comparison, except the number of rounds: for two hashes
	// of the same kind, the one with more rounds costs more.
	kind() string
	rounds() int
	// memory returns the number of bytes that a comparison needs, or 0 for a few kilobytes.
	memory() int64
	// spend takes as long as the given number of rounds of a comparison. If a comparison has only one round, it cannot
	// be divided, and spend performs whole comparisons.
	spend(password string, rounds int)
	// matches compares a normalized password with the hash.
	matches(password string) bool
}

// MaxMemory is the number of bytes that a comparison may need, and all comparisons of a server at the same time; see
// [Set.Parallel].
const MaxMemory = 1 << 30

// errUnknown is returned for a hash of an unknown kind.
var errUnknown = errors.New("is not a hash of argon2id, yescrypt, bcrypt, SHA-512 crypt or SHA-256 crypt")

// read parses a hash.
func read(text string) (hash, error) {
	kind, _, _ := strings.Cut(strings.TrimPrefix(text, "$"), "$")
	switch {
	case !strings.HasPrefix(text, "$"):
		return nil, errors.New("is not a password hash; passwords are not kept in plain text")
	case kind == "argon2id":
		return readArgon2id(text)
	case kind == "2a", kind == "2b", kind == "2y":
		return readBcrypt(text)
	case kind == "y":
		return readYescrypt(text)
	case kind == "5", kind == "6":
		return readSHACrypt(text)
	}
	return nil, errUnknown
}

// Problem returns why a text cannot be used as a password hash, or "" for a valid hash. The result does not contain the
// text, which may be a password.
func Problem(text string) string {
	h, err := read(text)
	if err != nil {
		return err.Error()
	}
	return h.problem()
}

// IsWeaker reports whether a hash of [New] should replace this hash, which matches the password. Hashes of argon2id
// stay, because somebody has chosen their parameters. So do bcrypt hashes of long passwords: bcrypt ignores all but the
// first bytes, so the user may have typed another password than the one that was hashed.
func IsWeaker(text, password string) bool {
	h, err := read(text)
	if err != nil {
		return false
	}
	switch h.(type) {
	case argon2idHash:
		return false
	case bcryptHash:
		return len(prepare(password)) <= maxBcryptPassword
	}
	return true
}

// isCrypt64 reports whether a text consists of the 64 characters that crypt(3) and bcrypt use to encode bytes.
func isCrypt64(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r != '.' && r != '/' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// prepare normalizes a password with the OpaqueString profile (RFC 8265, section 4.2), so that for example an é matches
// regardless of how a keyboard encodes it. It returns passwords that the profile does not allow unchanged. It also
// returns passwords that are not UTF-8 unchanged, because the profile would make all invalid bytes equal.
func prepare(password string) string {
	prepared, err := precis.OpaqueString.String(password)
	if err != nil || !utf8.ValidString(password) {
		return password
	}
	return prepared
}
