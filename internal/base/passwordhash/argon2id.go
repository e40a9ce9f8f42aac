package passwordhash

import (
	"errors"
	"fmt"

	"github.com/alexedwards/argon2id"
)

// Bounds of the parameters of argon2id. Below the minimums, the algorithm is undefined or too weak (RFC 9106, section
// 3.1). Above the maximums, a few concurrent logins would exhaust the memory of the machine or take minutes. The time
// depends on the product of memory and iterations. For example, pure-pw uses 8 MiB and the number of iterations that
// the machine performs in about a second, such as 127 or 511.
const (
	maxArgon2idMemory = MaxMemory >> 10 // KiB
	maxArgon2idWork   = 16 * (1 << 20)  // KiB multiplied by iterations; takes about ten seconds
	minArgon2idSalt   = 8               // bytes
	minArgon2idKey    = 16              // bytes
)

// Problems of several kinds of hashes.
const (
	tooWeak      = "has parameters too weak for "
	tooExpensive = "has parameters that would make each login too expensive"
)

// newMemory is the memory of a new hash in KiB.
const newMemory = 19 * 1024

// New returns the argon2id hash of a password in the PHC string format. Of the parameters that OWASP's Password Storage
// Cheat Sheet recommends, it uses those with little memory and two passes, because many logins may arrive at once.
func New(password string) (string, error) {
	text, err := argon2id.CreateHash(prepare(password), &argon2id.Params{
		Memory: newMemory, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32,
	})
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return text, nil
}

type argon2idHash struct {
	text      string
	params    *argon2id.Params
	salt, key []byte
}

func readArgon2id(text string) (hash, error) {
	params, salt, key, err := argon2id.DecodeHash(text)
	if err != nil {
		return nil, errors.New("is not an argon2id hash in the PHC string format")
	}
	return argon2idHash{text, params, salt, key}, nil
}

func (h argon2idHash) problem() string {
	p := h.params
	switch {
	case p.Iterations < 1 || p.Parallelism < 1 || p.Memory < 8*uint32(p.Parallelism), len(h.salt) < minArgon2idSalt,
		len(h.key) < minArgon2idKey:
		return tooWeak + "argon2id"
	case p.Memory > maxArgon2idMemory || uint64(p.Memory)*uint64(p.Iterations) > maxArgon2idWork:
		return tooExpensive
	}
	return ""
}

func (h argon2idHash) kind() string {
	p := h.params
	return fmt.Sprintf("argon2id m=%d t=%d p=%d", p.Memory, p.Iterations, p.Parallelism)
}

func (h argon2idHash) rounds() int { return 1 }

func (h argon2idHash) memory() int64 { return int64(h.params.Memory) << 10 }

func (h argon2idHash) spend(password string, rounds int) {
	for range rounds {
		h.matches(password)
	}
}

func (h argon2idHash) matches(password string) bool {
	match, err := argon2id.ComparePasswordAndHash(password, h.text)
	return err == nil && match
}
