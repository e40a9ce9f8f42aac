package tenant

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/alexedwards/argon2id"
	"golang.org/x/text/secure/precis"

	"github.com/babelftp/babelftp/internal/limits"
)

// hashParams is what new password hashes cost, as OWASP's cheat sheet on password storage recommends it: little memory, because
// many logins may come at once, and two passes for it.
func hashParams() *argon2id.Params {
	return &argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}
}

// HashPassword returns the argon2id hash of a password in the PHC string format.
func HashPassword(password string) (string, error) {
	hash, err := argon2id.CreateHash(preparePassword(password), hashParams())
	if err != nil {
		return "", fmt.Errorf("hash a password: %w", err)
	}
	return hash, nil
}

// preparePassword gives a password the one form that RFC 8265, section 4.2 asks for, so that the é of one keyboard is that of
// another. What that profile does not allow, such as a password that is not UTF-8, is taken as it is.
func preparePassword(password string) string {
	prepared, err := precis.OpaqueString.String(password)
	if err != nil {
		return password
	}
	return prepared
}

// passwordCacheTime is how long a password that was right needs no new argon2id: clients that open a connection for each file log in
// many times a minute.
const passwordCacheTime = 5 * time.Minute

// freeMemDelay is how long after a check its memory, many times that of a session, is given back. The garbage collector would let as
// much pile up once more before it looks.
const freeMemDelay = 500 * time.Millisecond

// A verifier checks passwords. However many clients try at once, it takes the memory of a few checks, and leaves a processor to others.
type verifier struct {
	queue        *limits.Queue[netip.Prefix] // for the checks that hash, by [limits.Network]
	key          []byte                      // of the MACs of passwords that were right; new in each process
	dummy        string                      // a hash that no user has, as costly as the costliest of them
	now          func() time.Time
	freeMemTimer *time.Timer // gives back the memory of checks, freeMemDelay after the last
}

// A credential is a user's password hash, and the cached MAC of the last password that was right.
type credential struct {
	hash   string
	cached atomic.Pointer[cachedPassword]
}

type cachedPassword struct {
	mac   []byte
	until time.Time
}

// newVerifier makes a verifier for users with these hashes.
func newVerifier(hashes []string) (*verifier, error) {
	dummy, err := argon2id.CreateHash(rand.Text(), costliest(hashes))
	if err != nil {
		return nil, fmt.Errorf("hash a password: %w", err)
	}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return &verifier{
		queue:        limits.NewQueue[netip.Prefix](max(1, runtime.GOMAXPROCS(0)-1)),
		key:          key,
		dummy:        dummy,
		now:          time.Now,
		freeMemTimer: time.AfterFunc(freeMemDelay, debug.FreeOSMemory),
	}, nil
}

// costliest is what the hash costs that takes longest, so that the time of a reply does not tell that a user is unknown. The
// configuration has only hashes that can be read.
func costliest(hashes []string) *argon2id.Params {
	most := &argon2id.Params{}
	for _, hash := range hashes {
		params, _, _, err := argon2id.DecodeHash(hash)
		if err == nil && cost(params) > cost(most) {
			most = params
		}
	}
	if cost(most) == 0 {
		return hashParams()
	}
	return most
}

// cost is how many KiB a hash goes through.
func cost(p *argon2id.Params) uint64 { return uint64(p.Memory) * uint64(p.Iterations) }

// check reports whether password is right for c. A nil c, an unknown user, is never right and takes as long. Clients wait in the queue by
// their network. The error is that of ctx, or of a broken hash.
func (v *verifier) check(ctx context.Context, client netip.Prefix, c *credential, password string) (bool, error) {
	password = preparePassword(password)
	hash := v.dummy
	if c != nil {
		hash = c.hash
	}
	mac := hmac.New(sha256.New, v.key)
	_, _ = fmt.Fprintf(mac, "%d:%s%s", len(hash), hash, password) // it never fails
	sum := mac.Sum(nil)
	if c != nil && c.isRight(sum, v.now()) {
		return true, nil
	}

	leave, err := v.queue.Enter(ctx, client)
	if err != nil {
		return false, err
	}
	match, err := argon2id.ComparePasswordAndHash(password, hash)
	leave()
	v.freeMemTimer.Reset(freeMemDelay)
	if err != nil {
		return false, fmt.Errorf("compare a password: %w", err)
	}
	if c == nil || !match {
		return false, nil
	}
	c.cached.Store(&cachedPassword{mac: sum, until: v.now().Add(passwordCacheTime)})
	return true, nil
}

func (c *credential) isRight(mac []byte, now time.Time) bool {
	last := c.cached.Load()
	return last != nil && now.Before(last.until) && subtle.ConstantTimeCompare(last.mac, mac) == 1
}
