package passwordhash

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"errors"
	stdhash "hash"
	"strconv"
	"strings"
	"time"

	"github.com/go-crypt/x/crypt"
)

// Bounds of SHA-crypt (https://www.akkadia.org/drepper/SHA-crypt.txt). It is not defined below the minimum of rounds. Above the maximum a
// comparison takes seconds.
const (
	defaultRounds = 5000
	minRounds     = 1000
	maxRounds     = 2_000_000
	maxSHASalt    = 16 // characters
)

// maxSHAPassword is the longest password of libxcrypt, in bytes: the time of a comparison grows with the length.
const maxSHAPassword = 511

// Estimates of how long a round takes.
const (
	timeOfRound512 = 420 * time.Nanosecond
	timeOfRound256 = 200 * time.Nanosecond
)

var errSHACrypt = errors.New("is no complete SHA-512 or SHA-256 hash of crypt")

// A shaHash is a hash of crypt(3): $6$salt$key or $6$rounds=5000$salt$key.
type shaHash struct {
	function  func() stdhash.Hash
	round     time.Duration // how long one takes
	rounds    int
	salt, key string
}

func readSHACrypt(text string) (hash, error) {
	h := shaHash{function: sha512.New, round: timeOfRound512, rounds: defaultRounds}
	keyLength := 86
	rest, is512 := strings.CutPrefix(text, "$6$")
	if !is512 {
		h.function, h.round, keyLength = sha256.New, timeOfRound256, 43
		rest = strings.TrimPrefix(text, "$5$")
	}
	if given, ok := strings.CutPrefix(rest, "rounds="); ok {
		var number string
		number, rest, _ = strings.Cut(given, "$")
		rounds, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return nil, errSHACrypt
		}
		h.rounds = int(rounds)
	}
	h.salt, h.key, _ = strings.Cut(rest, "$")
	if len(h.salt) > maxSHASalt || len(h.key) != keyLength || !isCrypt64(h.key) {
		return nil, errSHACrypt
	}
	return h, nil
}

func (h shaHash) problem() string {
	switch {
	case h.rounds < minRounds:
		return tooWeak + "SHA-crypt"
	case h.rounds > maxRounds:
		return tooExpensive
	}
	return ""
}

func (h shaHash) cost() time.Duration { return time.Duration(h.rounds) * h.round }

func (h shaHash) matches(password string) bool {
	hashed := password[:min(len(password), maxSHAPassword)]
	key := crypt.KeySHACrypt(h.function, []byte(hashed), []byte(h.salt), h.rounds)
	return subtle.ConstantTimeCompare(key, []byte(h.key)) == 1 && len(password) <= maxSHAPassword
}
