package journal

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

const (
	// maxChanges is the number of changed keys that a process remembers at least, for each bucket and prefix.
	maxChanges = 5_000

	// rememberFor is the minimum time for which a changed key is remembered. An upload of another replica has no record
	// before its first part, so its record may appear this long after the change of its key.
	rememberFor = 10 * time.Minute
)

// Changes remembers the keys that the sessions of a process have recently stored, moved or removed. A session must not
// resume an upload that began before its key, or a directory above it, changed. All journals of the same bucket and
// prefix share one Changes.
type Changes struct {
	process string    // a random name, so that the process recognizes its own records
	begun   time.Time // start of the process; the times in its records are relative to it

	mu            sync.Mutex
	recent, older map[string]time.Time       // by key; the key of a directory ends with a slash
	active        map[string][]*ActiveUpload // by key
}

// NewChanges returns an empty Changes.
func NewChanges() *Changes {
	return &Changes{
		process: nonce(), begun: time.Now(), recent: map[string]time.Time{}, active: map[string][]*ActiveUpload{},
	}
}

// add records that keys have changed now. A key that ends with a slash includes all keys that begin with it.
func (c *Changes) add(keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if len(c.recent) >= maxChanges {
			c.recent, c.older = map[string]time.Time{}, c.recent
		}
		c.recent[key] = time.Now()
		for of, open := range c.affected(key) {
			if of == key || strings.HasSuffix(key, s3object.Separator) && strings.HasPrefix(of, key) {
				for _, o := range open {
					o.changed = true
				}
			}
		}
	}
}

// affected returns the active uploads that a change of the key may affect.
func (c *Changes) affected(key string) map[string][]*ActiveUpload {
	if strings.HasSuffix(key, s3object.Separator) {
		return c.active
	}
	return map[string][]*ActiveUpload{key: c.active[key]}
}

// since reports whether a key, or a directory above it, has changed since begun. The caller must hold c.mu.
func (c *Changes) since(key string, begun time.Time) bool {
	for key != "" {
		if c.recent[key].After(begun) || c.older[key].After(begun) {
			return true
		}
		above := strings.TrimSuffix(key, s3object.Separator)
		key = key[:strings.LastIndex(above, s3object.Separator)+1]
	}
	return false
}

// below returns the changed keys that begin with a prefix. Unless age is 0, it forgets the keys that changed longer ago
// than age.
func (c *Changes) below(prefix string, age time.Duration) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []string
	for _, changes := range []map[string]time.Time{c.recent, c.older} {
		for key, at := range changes {
			switch {
			case !strings.HasPrefix(key, prefix):
			case age > 0 && time.Since(at) > age:
				delete(changes, key)
			default:
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// An ActiveUpload is an upload that a session of this process works on. It is nil for an upload that cannot be resumed,
// for which a change of its key does not matter.
type ActiveUpload struct {
	changes *Changes
	key     string
	Began   time.Time
	changed bool // the key has changed since the upload began; guarded by changes.mu
}

// begin registers an upload.
func (c *Changes) begin(key string, began time.Time) *ActiveUpload {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &ActiveUpload{changes: c, key: key, Began: began, changed: c.since(key, began)}
	c.active[key] = append(c.active[key], o)
	return o
}

// Changed reports whether the key, or a directory above it, has changed since the upload began.
func (o *ActiveUpload) Changed() bool {
	if o == nil {
		return false
	}
	o.changes.mu.Lock()
	defer o.changes.mu.Unlock()
	return o.changed
}

// End removes the upload from the Changes.
func (o *ActiveUpload) End() {
	if o == nil {
		return
	}
	c := o.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active[o.key] = slices.DeleteFunc(c.active[o.key], func(other *ActiveUpload) bool { return other == o })
	if len(c.active[o.key]) == 0 {
		delete(c.active, o.key)
	}
}
