package passwordhash

import (
	"errors"
	"fmt"

	"github.com/alexedwards/argon2id"
)

// Bounds of the parameters of argon2id. Below the minimums the algorithm is not defined or too weak (RFC 9106,
// section 3.1). Above the maximums a few logins at the same time would take the machine's memory, or minutes of its
// time. Time goes by memory and iterations together: pure-pw takes 8 MiB, and as many iterations as the machine does in
// about a second, such as 127 or 511.
const (
	maxArgon2idMemory = 1 << 20        // KiB
	maxArgon2idWork   = 16 * (1 << 20) // KiB, in all iterations: some ten seconds
	minArgon2idSalt   = 8              // bytes
	minArgon2idKey    = 16             // bytes
)

// Problems that hashes of several kinds have.
const (
	tooWeak      = "has parameters too weak for "
	tooExpensive = "has parameters that would make each login too expensive"
)

// New returns the argon2id hash of a password in the PHC string format. It costs what OWASP's cheat sheet on password
// storage recommends: little memory, because many logins may come at once, and two passes for it.
func New(password string) (string, error) {
	text, err := argon2id.CreateHash(prepare(password), &argon2id.Params{
		Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32,
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

func (h argon2idHash) spend(password string, rounds int) {
	for range rounds {
		h.matches(password)
	}
}

func (h argon2idHash) matches(password string) bool {
	match, err := argon2id.ComparePasswordAndHash(password, h.text)
	return err == nil && match
}
