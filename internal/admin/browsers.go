package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// maxBrowsers limits the logged-in browsers. When the limit is reached, the login that expires first is
// removed.
const maxBrowsers = 1000

// browsers holds the browsers that have logged in, by the hash of their cookie. The lookup compares hashes instead of
// cookies, so its timing tells an attacker nothing about valid cookies.
type browsers struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*browser
}

// A browser is a logged-in browser.
type browser struct {
	identity  Identity // at the login
	until     time.Time
	provider  *providerLogin // nil for a login with a password or the link
	key       [sha256.Size]byte
	loggedOut chan struct{} // closed by remove
}

func newBrowsers() *browsers { return &browsers{all: map[[sha256.Size]byte]*browser{}} }

// logIn logs a browser in and returns the value of its cookie.
func (b *browsers) logIn(of Identity) (cookie string) {
	return b.add(&browser{identity: of, until: time.Now().Add(cookieLife)})
}

// add adds a login and returns the value of its cookie.
func (b *browsers) add(next *browser) (cookie string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	var first [sha256.Size]byte
	for key, one := range b.all {
		if now.After(one.until) {
			b.remove(key)
		} else if before := b.all[first]; before == nil || one.until.Before(before.until) {
			first = key
		}
	}
	if len(b.all) >= maxBrowsers {
		b.remove(first)
	}
	cookie = rand.Text()
	next.key, next.loggedOut = sha256.Sum256([]byte(cookie)), make(chan struct{})
	b.all[next.key] = next
	return cookie
}

// find returns the logged-in browser with this cookie, or nil.
func (b *browsers) find(cookie string) *browser {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[sha256.Sum256([]byte(cookie))]
	if one == nil || time.Now().After(one.until) {
		return nil
	}
	return one
}

// end logs a browser out.
func (b *browsers) end(one *browser) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(one.key)
}

// remove deletes a login if it exists. The caller holds the mutex.
func (b *browsers) remove(key [sha256.Size]byte) {
	if one := b.all[key]; one != nil {
		close(one.loggedOut)
		delete(b.all, key)
	}
}
