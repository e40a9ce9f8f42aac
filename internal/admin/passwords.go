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

// maxChecks limits the concurrent password checks.
const maxChecks = 2

// passwords checks the passwords of administrators. A check against the hash is expensive, and scripts send
// the password with each request, so passwords that were right are remembered by a hash with a key of this
// process.
type passwords struct {
	hashes map[string]string // by name
	set    *passwordhash.Set
	checks chan struct{}
	key    string

	mu      sync.Mutex
	correct map[string][sha256.Size]byte // by name
}

func newPasswords(hashes map[string]string) (*passwords, error) {
	set, err := passwordhash.NewSet(slices.Collect(maps.Values(hashes)))
	if err != nil {
		return nil, err
	}
	return &passwords{
		hashes: hashes, set: set, checks: make(chan struct{}, set.Parallel(maxChecks)), key: rand.Text(),
		correct: map[string][sha256.Size]byte{},
	}, nil
}

// equal reports whether p and other have the same names and hashes.
func (p *passwords) equal(other *passwords) bool {
	return p == other || p != nil && other != nil && maps.Equal(p.hashes, other.hashes)
}

// remembered reports whether the password was right before.
func (p *passwords) remembered(name, password string) bool {
	sum := sha256.Sum256([]byte(p.key + password))
	p.mu.Lock()
	defer p.mu.Unlock()
	before, found := p.correct[name]
	return found && subtle.ConstantTimeCompare(before[:], sum[:]) == 1
}

// match checks the password against the hash. Unknown names take the same time as known ones.
func (p *passwords) match(ctx context.Context, name, password string) bool {
	select {
	case p.checks <- struct{}{}:
		defer func() { <-p.checks }()
	case <-ctx.Done():
		return false
	}
	ok, err := p.set.Matches(p.hashes[name], password)
	if err != nil || !ok {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.correct[name] = sha256.Sum256([]byte(p.key + password))
	return true
}
