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
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/base/schedule"
)

// passwordCacheTime is the lifetime of the password cache, which avoids hashing a password again. Some clients open a
// connection for each file and log in many times per minute.
const passwordCacheTime = 5 * time.Minute

// freeDelay is the time after the last check at which its memory is returned to the operating system. A hash takes as
// much memory as a thousand sessions, and without a garbage collection uploads would need theirs in addition.
const freeDelay = 500 * time.Millisecond

// A verifier checks passwords. It limits the checks that run in parallel, so that password guessing can neither
// exhaust the memory nor occupy all CPUs.
type verifier struct {
	queue  *schedule.Queue // queue of checks that hash, fair by [limits.Network]
	key    []byte          // for the MACs of verified passwords; random in each process
	hashes atomic.Pointer[passwordhash.Set]
	now    func() time.Time
	free   *time.Timer // returns memory after freeDelay
}

// A credential is the password hash of a user and the cache entry of the last verified password. The zero value is
// used for unknown users.
type credential struct {
	hash     string
	last     *atomic.Pointer[acceptedPassword]
	verified func(password string) // called if the hash matches; may be nil
}

// credential returns the credential of the user.
func (u *User) credential() credential {
	return credential{hash: u.PasswordHash.Reveal(), last: &u.state.password}
}

// An acceptedPassword is the cache entry of a verified password: a MAC of the hash and the password.
type acceptedPassword struct {
	mac   []byte
	until time.Time
}

// newVerifier returns a verifier without any hashes.
func newVerifier() *verifier {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	v := &verifier{
		queue: schedule.NewQueue(0, 0), key: key, now: time.Now, free: time.AfterFunc(freeDelay, debug.FreeOSMemory),
	}
	v.use(&passwordhash.Set{})
	return v
}

// use verifies passwords against these hashes. Checks run in parallel on all processors but one, as far as their memory
// permits.
func (v *verifier) use(hashes *passwordhash.Set) {
	v.hashes.Store(hashes)
	v.queue.Resize(hashes.Parallel(runtime.GOMAXPROCS(0) - 1))
}

// checkAny reports whether one of the passwords matches c. The first is the password as UTF-8, the others are its
// readings in other charsets, because text in another charset can happen to be valid UTF-8. A password with non-ASCII
// characters is always checked twice, so that the time does not reveal whether the user has a charset.
func (v *verifier) checkAny(
	ctx context.Context, client netip.Prefix, c credential, passwords []string,
) (right bool, err error) {
	first := passwords[0]
	if len(passwords) == 1 && utf8.ValidString(first) &&
		strings.ContainsFunc(first, func(r rune) bool { return r >= utf8.RuneSelf }) {
		passwords = append(passwords, first)
	}
	for _, password := range passwords {
		if right, err = v.check(ctx, client, c, password); right || err != nil {
			break
		}
	}
	return right, err
}

// check reports whether password matches c. It takes the same time for all wrong passwords, and for unknown users,
// whose password never matches. Clients wait in a queue by network. The error is from ctx or an invalid hash.
func (v *verifier) check(ctx context.Context, client netip.Prefix, c credential, password string) (bool, error) {
	mac := hmac.New(sha256.New, v.key)
	_, _ = fmt.Fprintf(mac, "%d:%s%s", len(c.hash), c.hash, password) // never fails
	sum := mac.Sum(nil)
	if c.wasAccepted(sum, v.now()) {
		return true, nil
	}

	slot, err := v.queue.Acquire(ctx, schedule.Key{Member: client.String()})
	if err != nil {
		return false, abandoned(err)
	}
	match, err := v.hashes.Load().Matches(c.hash, password)
	slot.Release()
	v.free.Reset(freeDelay)
	if err != nil {
		return false, fmt.Errorf("check password hash: %w", err)
	}
	if c.last == nil || !match {
		return false, nil
	}
	c.last.Store(&acceptedPassword{mac: sum, until: v.now().Add(passwordCacheTime)})
	if c.verified != nil {
		c.verified(password)
	}
	return true, nil
}

// wasAccepted reports whether the password with this MAC was verified recently.
func (c credential) wasAccepted(mac []byte, now time.Time) bool {
	if c.last == nil {
		return false
	}
	last := c.last.Load()
	return last != nil && now.Before(last.until) && subtle.ConstantTimeCompare(last.mac, mac) == 1
}
