package passwordhash

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/bcrypt"
)

// Lengths in characters of a bcrypt hash ($2b$10$ followed by salt and key) and of its salt and key.
const (
	bcryptLength = 60
	bcryptKey    = 53
)

// maxBcryptCost is the maximum cost. A comparison then takes several seconds; each further step would double the time.
const maxBcryptCost = 16

type bcryptHash struct {
	text string
	log2 int // base-2 logarithm of the number of iterations
}

func readBcrypt(text string) (hash, error) {
	log2, err := bcrypt.Cost([]byte(text))
	if err != nil || len(text) != bcryptLength || !isCrypt64(text[bcryptLength-bcryptKey:]) {
		return nil, errors.New("is not a complete bcrypt hash")
	}
	return bcryptHash{text, log2}, nil
}

func (h bcryptHash) problem() string {
	if h.log2 > maxBcryptCost {
		return fmt.Sprintf("%s: its cost is above %d", tooExpensive, maxBcryptCost)
	}
	return ""
}

func (h bcryptHash) kind() string { return fmt.Sprintf("bcrypt cost=%d", h.log2) }

func (h bcryptHash) rounds() int { return 1 }

func (h bcryptHash) memory() int64 { return 0 }

func (h bcryptHash) spend(password string, rounds int) {
	for range rounds {
		h.matches(password)
	}
}

// maxBcryptPassword is the number of bytes of a password that bcrypt uses. All implementations ignore the rest.
const maxBcryptPassword = 72

func (h bcryptHash) matches(password string) bool {
	return bcrypt.CompareHashAndPassword([]byte(h.text), []byte(password)) == nil
}
