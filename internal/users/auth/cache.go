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

// maxCached limits the logins in a cache, each of which takes a few hundred bytes. If the cache is full, further
// logins are not cached.
const maxCached = 10000

// A cache remembers successful logins for a short time. It never caches refused logins. The key is a MAC of the whole
// request, so that passwords are not kept in memory, and a request from another address is sent to the source again.
type cache struct {
	Source
	ttl time.Duration
	key []byte // random in each process
	now func() time.Time

	mu       sync.Mutex
	accepted map[[sha256.Size]byte]accepted
	oldest   [][sha256.Size]byte // the keys in the order of insertion, which is roughly the order of expiry
}

type accepted struct {
	*Response
	until time.Time
}

func newCache(s Source, ttl time.Duration) *cache {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return &cache{Source: s, ttl: ttl, key: key, now: time.Now, accepted: map[[sha256.Size]byte]accepted{}}
}

// Authenticate implements [Source].
func (c *cache) Authenticate(ctx context.Context, req *Request) (*Response, error) {
	mac := c.mac(req)
	if response := c.lookup(mac); response != nil {
		return response, nil
	}
	requested := c.now() // before the request, because the response is at least this old
	response, err := c.Source.Authenticate(ctx, req)
	if err != nil {
		return nil, err
	}
	c.remember(mac, accepted{response, requested.Add(c.ttl)})
	return response, nil
}

func (c *cache) mac(req *Request) [sha256.Size]byte {
	h := hmac.New(sha256.New, c.key)
	// JSON separates the fields unambiguously, and encodes bytes that are not UTF-8 as base64. Writing to a hash
	// never fails.
	_ = json.NewEncoder(h).Encode(
		[][]byte{[]byte(req.Tenant), []byte(req.User), []byte(req.Password), []byte(req.Address)})
	_, _ = fmt.Fprint(h, req.Encrypted)
	return [sha256.Size]byte(h.Sum(nil))
}

func (c *cache) lookup(mac [sha256.Size]byte) *Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.accepted[mac]
	if !ok || !c.now().Before(found.until) {
		return nil
	}
	return found.Response
}

func (c *cache) remember(mac [sha256.Size]byte, a accepted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for now := c.now(); len(c.oldest) > 0 && !now.Before(c.accepted[c.oldest[0]].until); c.oldest = c.oldest[1:] {
		delete(c.accepted, c.oldest[0])
	}
	if _, known := c.accepted[mac]; !known { // already present if the same login was in flight twice
		if len(c.oldest) >= maxCached {
			return
		}
		c.oldest = append(c.oldest, mac)
	}
	c.accepted[mac] = a
}
