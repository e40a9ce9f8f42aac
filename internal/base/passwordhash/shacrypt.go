package passwordhash

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"errors"
	"fmt"
	stdhash "hash"
	"strconv"
	"strings"

	"github.com/go-crypt/x/crypt"
)

// Bounds of SHA-crypt (https://www.akkadia.org/drepper/SHA-crypt.txt). It is undefined for fewer than minRounds. A
// comparison with more than maxRounds would take seconds.
const (
	defaultRounds = 5000
	minRounds     = 1000
	maxRounds     = 2_000_000
	maxSHASalt    = 16 // characters
)

// maxSHAPassword is the maximum length of a password in bytes, as in libxcrypt. The time of a comparison grows with the
// length.
const maxSHAPassword = 511

var errSHACrypt = errors.New("is not a complete SHA-512 or SHA-256 hash of crypt")

// A shaHash is a hash of crypt(3): $6$salt$key or $6$rounds=5000$salt$key.
type shaHash struct {
	function  func() stdhash.Hash
	count     int // number of rounds
	salt, key string
}

func readSHACrypt(text string) (hash, error) {
	h := shaHash{function: sha512.New, count: defaultRounds}
	keyLength := 86
	rest, is512 := strings.CutPrefix(text, "$6$")
	if !is512 {
		h.function, keyLength = sha256.New, 43
		rest = strings.TrimPrefix(text, "$5$")
	}
	if given, ok := strings.CutPrefix(rest, "rounds="); ok {
		var number string
		number, rest, _ = strings.Cut(given, "$")
		rounds, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return nil, errSHACrypt
		}
		h.count = int(rounds)
	}
	h.salt, h.key, _ = strings.Cut(rest, "$")
	if len(h.salt) > maxSHASalt || len(h.key) != keyLength || !isCrypt64(h.key) {
		return nil, errSHACrypt
	}
	return h, nil
}

func (h shaHash) problem() string {
	switch {
	case h.count < minRounds:
		return tooWeak + "SHA-crypt"
	case h.count > maxRounds:
		return tooExpensive
	}
	return ""
}

// kind includes the length of the salt, because the salt is hashed in most rounds.
func (h shaHash) kind() string {
	return fmt.Sprintf("SHA-crypt key=%d salt=%d", len(h.key), len(h.salt))
}

// rounds implements hash. Some systems choose the number of rounds at random for each user.
func (h shaHash) rounds() int { return h.count }

func (h shaHash) memory() int64 { return 0 }

func (h shaHash) spend(password string, rounds int) { h.compute(password, rounds) }

func (h shaHash) matches(password string) bool {
	key := h.compute(password, h.count)
	return subtle.ConstantTimeCompare(key, []byte(h.key)) == 1 && len(password) <= maxSHAPassword
}

func (h shaHash) compute(password string, rounds int) []byte {
	hashed := password[:min(len(password), maxSHAPassword)]
	return crypt.KeySHACrypt(h.function, []byte(hashed), []byte(h.salt), rounds)
}
