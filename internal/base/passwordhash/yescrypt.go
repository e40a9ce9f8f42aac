package passwordhash

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"

	"github.com/go-crypt/x/yescrypt"
)

// Bounds of the parameters that the library supports: N is a power of two, and r the size of a block in units of 128
// bytes. They include everything that libxcrypt generates.
const (
	minYescryptLog2N = 10
	maxYescryptLog2N = 18
	maxYescryptR     = 32
)

// Lengths in characters of the salt, which may be empty, and of the key.
const (
	maxYescryptSalt = 86
	yescryptKey     = 43
)

// maxYescryptPassword is the maximum length of a password in bytes, as in libxcrypt.
const maxYescryptPassword = 511

var errYescrypt = errors.New("is not a complete yescrypt hash")

// A yescryptHash is a hash of crypt(3): $y$j9T$salt$key. The j stands for the flags that all programs use, the other
// two characters for N and r.
type yescryptHash struct {
	text  string
	log2N int // base-2 logarithm of N
	r     int
}

func readYescrypt(text string) (hash, error) {
	fields := strings.Split(text, "$") // "", "y", parameters, salt, key
	if len(fields) != 5 || len(fields[3]) > maxYescryptSalt || len(fields[4]) != yescryptKey ||
		!isCrypt64(fields[3]+fields[4]) || yescrypt.Decode64([]byte(fields[3])) == nil && fields[3] != "" {
		return nil, errYescrypt
	}
	_, log2N, r, err := yescrypt.DecodeSetting([]byte(fields[2]))
	if err != nil || !isCrypt64(fields[2]) {
		return nil, errors.New("has parameters of yescrypt that are not supported")
	}
	return yescryptHash{text, log2N, r}, nil
}

func (h yescryptHash) problem() string {
	switch {
	case h.log2N < minYescryptLog2N:
		return tooWeak + "yescrypt"
	case h.log2N > maxYescryptLog2N || h.r > maxYescryptR || h.memory() > MaxMemory:
		return tooExpensive
	}
	return ""
}

func (h yescryptHash) kind() string { return fmt.Sprintf("yescrypt N=2^%d r=%d", h.log2N, h.r) }

func (h yescryptHash) rounds() int { return 1 }

func (h yescryptHash) memory() int64 { return 128 * int64(h.r) << h.log2N }

func (h yescryptHash) spend(password string, rounds int) {
	for range rounds {
		h.matches(password)
	}
}

func (h yescryptHash) matches(password string) bool {
	hashed := password[:min(len(password), maxYescryptPassword)]
	text, err := yescrypt.Hash([]byte(hashed), []byte(h.text))
	return err == nil && subtle.ConstantTimeCompare(text, []byte(h.text)) == 1 && len(password) <= maxYescryptPassword
}
