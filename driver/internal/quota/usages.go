package quota

import (
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/profile"
)

// Usages is the table of the usages in one bucket, by prefix. All file systems of the bucket share it, so a key
// counts in each usage whose prefix it has, whoever stores it. A usage is made when a limit asks for it, and dropped
// when no limit has asked for it for a while.
type Usages struct {
	mu     sync.Mutex
	places map[string]*Usage    // by prefix
	open   map[*Change]struct{} // those in progress, which a new usage must know
}

// NewUsages returns an empty table.
func NewUsages() *Usages {
	return &Usages{places: map[string]*Usage{}, open: map[*Change]struct{}{}}
}

// Of returns the usage of a prefix, which is empty or ends with a slash. It makes no request. If the usage is new,
// its objects are counted by the client.
func (t *Usages) Of(client s3api.Client, bucketName, prefix string) (u *Usage, added bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if u = t.places[prefix]; u != nil {
		u.asked = now
		return u, false
	}
	u = &Usage{
		table: t, prefix: prefix, added: now, asked: now,
		counting: make(chan struct{}, 1), charges: map[string]*charge{},
	}
	u.SetClient(client, bucketName)
	t.places[prefix] = u
	for c := range t.open {
		if u.contains(c.key) {
			c.join(u)
		}
	}
	return u, true
}

// Forget drops the usages for which nobody has asked for so long.
func (t *Usages) Forget(age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.places, func(_ string, u *Usage) bool { return time.Since(u.asked) > age })
}

// containing returns the usages of the prefixes of a key. The caller holds the lock.
func (t *Usages) containing(key string) []*Usage {
	if len(t.places) == 0 {
		return nil
	}
	var all []*Usage
	for end := 0; end >= 0; {
		if u := t.places[key[:end]]; u != nil {
			all = append(all, u)
		}
		next := strings.Index(key[end:], s3object.Separator)
		if next < 0 {
			break
		}
		end += next + 1
	}
	return all
}

// SetClient makes the next counts by another client, for example with other credentials. The objects must be the
// same.
func (u *Usage) SetClient(client s3api.Client, bucketName string) {
	u.bucket.Store(s3api.NewBucket(client, bucketName, profile.Profile{}, &s3api.Stats{}, 0)) // it reads no object
}

// contains reports whether a key counts.
func (u *Usage) contains(key string) bool { return strings.HasPrefix(key, u.prefix) }
