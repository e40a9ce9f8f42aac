package tenant

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/alexedwards/argon2id"
	"golang.org/x/text/secure/precis"
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

// A verifier checks passwords. However many clients try at once, it holds the memory of a few checks only.
type verifier struct {
	slots        chan struct{} // one for each check under way
	key          []byte        // of the MACs of passwords that were right; new in each process
	dummy        string        // a hash that no user has
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

func newVerifier() (*verifier, error) {
	dummy, err := HashPassword(rand.Text())
	if err != nil {
		return nil, err
	}
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return &verifier{
		slots:        make(chan struct{}, runtime.GOMAXPROCS(0)), // more at once would only take more memory
		key:          key,
		dummy:        dummy,
		now:          time.Now,
		freeMemTimer: time.AfterFunc(freeMemDelay, debug.FreeOSMemory),
	}, nil
}

// check reports whether password is right for c. A nil c, an unknown user, is never right and takes as long. The error is that of
// ctx, or of a broken hash.
func (v *verifier) check(ctx context.Context, c *credential, password string) (bool, error) {
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

	select {
	case v.slots <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	match, err := argon2id.ComparePasswordAndHash(password, hash)
	<-v.slots
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
