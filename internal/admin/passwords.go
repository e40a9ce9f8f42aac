package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"slices"
	"sync"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
)

// maxChecks is how many passwords are compared with hashes at the same time. Each takes some 20 MiB.
const maxChecks = 2

// passwords are those of administrators. A comparison with a hash costs much, and scripts send a password with each
// request. So passwords that were right are remembered, by hashes with a key of this process.
type passwords struct {
	hashes map[string]string // by name
	set    *passwordhash.Set
	turn   chan struct{}
	key    string

	mu    sync.Mutex
	right map[string][sha256.Size]byte // by name
}

func newPasswords(hashes map[string]string) (*passwords, error) {
	set, err := passwordhash.NewSet(slices.Collect(maps.Values(hashes)))
	return &passwords{
		hashes: hashes, set: set, turn: make(chan struct{}, maxChecks), key: rand.Text(),
		right: map[string][sha256.Size]byte{},
	}, err
}

// equal tells whether others are the same.
func (p *passwords) equal(other *passwords) bool {
	return p == other || p != nil && other != nil && maps.Equal(p.hashes, other.hashes)
}

// remembered tells whether the password was right before.
func (p *passwords) remembered(name, password string) bool {
	sum := sha256.Sum256([]byte(p.key + password))
	p.mu.Lock()
	defer p.mu.Unlock()
	before, found := p.right[name]
	return found && subtle.ConstantTimeCompare(before[:], sum[:]) == 1
}

// match compares the password with the hash, at the same cost for a name without a hash.
func (p *passwords) match(ctx context.Context, name, password string) bool {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return false
	}
	ok, err := p.set.Matches(p.hashes[name], password)
	if err != nil || !ok {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.right[name] = sha256.Sum256([]byte(p.key + password))
	return true
}
