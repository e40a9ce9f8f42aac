package journal

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

const (
	// maxChanges is how many changed names a process remembers at least, in each place.
	maxChanges = 5_000

	// rememberFor is how long it remembers them at least. An upload of another replica has no record before its first
	// part, so its record may appear that long after the change of its name.
	rememberFor = 10 * time.Minute
)

// Changes are the names that the sessions of a process have stored, moved or removed a while ago. No session resumes an
// upload that began before its name changed, or a directory above it. Share one among the journals of a place.
type Changes struct {
	process string    // a random name, so that the process recognizes its own records
	begun   time.Time // when it began, for the times in these records

	mu            sync.Mutex
	recent, older map[string]time.Time // by key; the key of a directory ends with a slash
	open          map[string][]*Open   // by key
}

// NewChanges returns an empty memory.
func NewChanges() *Changes {
	return &Changes{process: nonce(), begun: time.Now(), recent: map[string]time.Time{}, open: map[string][]*Open{}}
}

// add notes that keys have changed just now. A key that ends with a slash stands for all keys that begin with it.
func (c *Changes) add(keys ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if len(c.recent) >= maxChanges {
			c.recent, c.older = map[string]time.Time{}, c.recent
		}
		c.recent[key] = time.Now()
		for of, open := range c.opened(key) {
			if of == key || strings.HasSuffix(key, s3object.Separator) && strings.HasPrefix(of, key) {
				for _, o := range open {
					o.changed = true
				}
			}
		}
	}
}

// opened returns the open uploads that a change of a key may concern.
func (c *Changes) opened(key string) map[string][]*Open {
	if strings.HasSuffix(key, s3object.Separator) {
		return c.open
	}
	return map[string][]*Open{key: c.open[key]}
}

// since reports whether a key, or a directory above it, has changed since a time.
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

// below returns the changed keys that begin with a prefix. It forgets those that changed longer ago than age, unless
// age is 0.
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

// An Open is an upload that a session of this process works on. A nil Open stands for an upload that no session can
// resume, so that a change of its name does not matter.
type Open struct {
	changes *Changes
	key     string
	Began   time.Time
	changed bool // the name has changed since; guarded by changes
}

// begin notes an upload that began at a time.
func (c *Changes) begin(key string, began time.Time) *Open {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := &Open{changes: c, key: key, Began: began, changed: c.since(key, began)}
	c.open[key] = append(c.open[key], o)
	return o
}

// Changed reports whether the name, or a directory above it, has changed since the upload began.
func (o *Open) Changed() bool {
	if o == nil {
		return false
	}
	o.changes.mu.Lock()
	defer o.changes.mu.Unlock()
	return o.changed
}

// End forgets the upload.
func (o *Open) End() {
	if o == nil {
		return
	}
	c := o.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[o.key] = slices.DeleteFunc(c.open[o.key], func(other *Open) bool { return other == o })
	if len(c.open[o.key]) == 0 {
		delete(c.open, o.key)
	}
}
