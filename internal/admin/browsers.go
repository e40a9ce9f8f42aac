package admin

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// maxBrowsers is how many browsers are logged in at most. The one that would end first makes room for another.
const maxBrowsers = 1000

// browsers are those that have logged in with a password, by hashes of their cookies. So what is compared tells a
// stranger nothing by its time.
type browsers struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*browser
}

// A browser is logged in.
type browser struct {
	administrator string
	until         time.Time
	loggedOut     chan struct{} // closed by end
}

func newBrowsers() *browsers { return &browsers{all: map[[sha256.Size]byte]*browser{}} }

// begin logs a browser in, and returns the value of its cookie.
func (b *browsers) begin(administrator string) (cookie string) {
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
	b.all[sha256.Sum256([]byte(cookie))] = &browser{
		administrator: administrator, until: now.Add(cookieLife), loggedOut: make(chan struct{}),
	}
	return cookie
}

// find is the browser with a cookie, nil for none that is logged in. Its channel is closed when it logs out.
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
func (b *browsers) end(cookie string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(sha256.Sum256([]byte(cookie)))
}

// remove ends a login, if there is one.
func (b *browsers) remove(key [sha256.Size]byte) {
	if one := b.all[key]; one != nil {
		close(one.loggedOut)
		delete(b.all, key)
	}
}
