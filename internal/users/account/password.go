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
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/base/schedule"
)

// passwordCacheTime is how long a password that was right is not hashed again: clients that open a connection for
// each file log in many times a minute.
const passwordCacheTime = 5 * time.Minute

// A verifier checks passwords. However many clients try at once, it takes the memory of a few checks, and leaves a
// processor to others.
type verifier struct {
	queue  *schedule.Queue // for the checks that hash, by [limits.Network]
	key    []byte          // of the MACs of passwords that were right; new in each process
	hashes atomic.Pointer[passwordhash.Set]
	now    func() time.Time
}

// A credential is a user's password hash, and where the last password that was right is remembered. The zero value is
// that of an unknown user.
type credential struct {
	hash string
	last *atomic.Pointer[rightPassword]
}

// credential is that of the user.
func (u *User) credential() credential { return credential{u.PasswordHash.Reveal(), &u.state.password} }

// A rightPassword remembers a password that was right for a hash, by a MAC of both.
type rightPassword struct {
	mac   []byte
	until time.Time
}

// newVerifier makes a verifier for no users.
func newVerifier() *verifier {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	v := &verifier{
		queue: schedule.NewQueue(max(1, runtime.GOMAXPROCS(0)-1), 0),
		key:   key,
		now:   time.Now,
	}
	v.hashes.Store(&passwordhash.Set{})
	return v
}

// checkAny reports whether one of the passwords is right for c. The first one may be valid UTF-8 by chance; the others
// are its readings in charsets. A password with other characters than ASCII is always checked twice, so that the time
// does not show whether the user has a charset.
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

// check reports whether password is right for c. For an unknown user none is. All passwords that are wrong cost the
// same. Clients wait in the queue by their network. The error is that of ctx, or of a broken hash.
func (v *verifier) check(ctx context.Context, client netip.Prefix, c credential, password string) (bool, error) {
	mac := hmac.New(sha256.New, v.key)
	_, _ = fmt.Fprintf(mac, "%d:%s%s", len(c.hash), c.hash, password) // it never fails
	sum := mac.Sum(nil)
	if c.wasRight(sum, v.now()) {
		return true, nil
	}

	slot, err := v.queue.Enter(ctx, schedule.Key{Member: client.String()})
	if err != nil {
		return false, abandoned(err)
	}
	match, err := v.hashes.Load().Matches(c.hash, password)
	slot.Leave()
	if err != nil {
		return false, fmt.Errorf("compare a password: %w", err)
	}
	if c.last == nil || !match {
		return false, nil
	}
	c.last.Store(&rightPassword{mac: sum, until: v.now().Add(passwordCacheTime)})
	return true, nil
}

// wasRight reports whether the password with this MAC was right a short time ago.
func (c credential) wasRight(mac []byte, now time.Time) bool {
	if c.last == nil {
		return false
	}
	last := c.last.Load()
	return last != nil && now.Before(last.until) && subtle.ConstantTimeCompare(last.mac, mac) == 1
}
