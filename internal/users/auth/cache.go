package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// maxCached is how many logins a cache holds, some hundred bytes each. Above it logins ask the source.
const maxCached = 10000

// A cache remembers for a short time what a source has accepted, and nothing that it has refused. A request is known
// by a MAC of all that the source gets, so that no password stays in memory and another address asks again.
type cache struct {
	Source
	ttl time.Duration
	key []byte // new in each process
	now func() time.Time

	mu       sync.Mutex
	accepted map[[sha256.Size]byte]accepted
	oldest   [][sha256.Size]byte // their keys in the order in which they came, and so about that in which they expire
}

type accepted struct {
	*Answer
	until time.Time
}

func newCache(s Source, ttl time.Duration) *cache {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return &cache{Source: s, ttl: ttl, key: key, now: time.Now, accepted: map[[sha256.Size]byte]accepted{}}
}

// Authenticate implements [Source].
func (c *cache) Authenticate(ctx context.Context, req *Request) (*Answer, error) {
	mac := c.mac(req)
	if answer := c.known(mac); answer != nil {
		return answer, nil
	}
	asked := c.now() // the answer is no younger
	answer, err := c.Source.Authenticate(ctx, req)
	if err != nil {
		return nil, err
	}
	c.remember(mac, accepted{answer, asked.Add(c.ttl)})
	return answer, nil
}

func (c *cache) mac(req *Request) [sha256.Size]byte {
	h := hmac.New(sha256.New, c.key)
	// A list of texts in JSON is no other list: bytes that are not UTF-8 are in it as numbers.
	// it never fails
	_ = json.NewEncoder(h).Encode(
		[][]byte{[]byte(req.Tenant), []byte(req.User), []byte(req.Password), []byte(req.Address)})
	// nor does this
	_, _ = fmt.Fprint(h, req.Encrypted)
	return [sha256.Size]byte(h.Sum(nil))
}

func (c *cache) known(mac [sha256.Size]byte) *Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.accepted[mac]
	if !ok || !c.now().Before(found.until) {
		return nil
	}
	return found.Answer
}

func (c *cache) remember(mac [sha256.Size]byte, a accepted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for now := c.now(); len(c.oldest) > 0 && !now.Before(c.accepted[c.oldest[0]].until); c.oldest = c.oldest[1:] {
		delete(c.accepted, c.oldest[0])
	}
	if _, known := c.accepted[mac]; !known { // it is where the same login came twice at once
		if len(c.oldest) >= maxCached {
			return
		}
		c.oldest = append(c.oldest, mac)
	}
	c.accepted[mac] = a
}
