package passwordhash

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/bcrypt"
)

// Lengths of a bcrypt hash, in characters: $2b$10$, and 53 of salt and key.
const (
	bcryptLength = 60
	bcryptKey    = 53
)

// maxBcryptCost is where a comparison takes several seconds. Each step above doubles that.
const maxBcryptCost = 16

type bcryptHash struct {
	text string
	log2 int // of the iterations
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

func (h bcryptHash) spend(password string, rounds int) {
	for range rounds {
		h.matches(password)
	}
}

// matches compares the first 72 bytes of a password, as bcrypt does everywhere.
func (h bcryptHash) matches(password string) bool {
	return bcrypt.CompareHashAndPassword([]byte(h.text), []byte(password)) == nil
}
