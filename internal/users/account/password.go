package account

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

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
)

// passwordCacheTime is how long a password that was right is not hashed again: clients that open a connection for
// each file log in many times a minute.
const passwordCacheTime = 5 * time.Minute

// freeMemDelay is how long after a check its memory, many times that of a session, is given back. The garbage
// collector would let as much pile up once more before it looks.
const freeMemDelay = 500 * time.Millisecond

// A verifier checks passwords. However many clients try at once, it takes the memory of a few checks, and leaves a
// processor to others.
type verifier struct {
	queue        *limits.Queue[netip.Prefix] // for the checks that hash, by [limits.Network]
	key          []byte                      // of the MACs of passwords that were right; new in each process
	hashes       atomic.Pointer[passwordhash.Set]
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
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	v := &verifier{
		queue:        limits.NewQueue[netip.Prefix](max(1, runtime.GOMAXPROCS(0)-1)),
		key:          key,
		now:          time.Now,
		freeMemTimer: time.AfterFunc(freeMemDelay, debug.FreeOSMemory),
	}
	set, err := passwordhash.NewSet(hashes)
	v.hashes.Store(set)
	return v, err
}

// check reports whether password is right for c. A nil c, an unknown user, is never right. All passwords that are
// wrong cost the same. Clients wait in the queue by their network. The error is that of ctx, or of a broken hash.
func (v *verifier) check(ctx context.Context, client netip.Prefix, c *credential, password string) (bool, error) {
	hash := ""
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
		return false, abandoned(err)
	}
	match, err := v.hashes.Load().Matches(hash, password)
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
