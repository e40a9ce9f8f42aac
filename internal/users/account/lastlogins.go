package account

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	shared "github.com/babelftp/babelftp/internal/storage/state"
)

const (
	// loginsInterval is the time between two writes of last logins to the shared state.
	loginsInterval = 10 * time.Second
	// maxSharedLogins limits the last logins of a tenant in the shared state. The latest are kept.
	maxSharedLogins = 10_000
	// maxLoginsSize limits the size of an item with last logins, in bytes. If names are long, fewer are kept.
	maxLoginsSize = 640 << 10

	loginsPrefix = "logins/"
)

// lastLogins has the time of the last login of each user. Replicas share them if [lastLogins.share] is called: the item
// "logins/TENANT", with the tenant in Base64, has the times of all users of a tenant.
type lastLogins struct {
	log *slog.Logger

	mu      sync.Mutex
	times   map[stateKey]time.Time
	unsaved map[string]map[string]time.Time // logins of this replica that are not shared yet, by tenant and user
	store   *shared.Store                   // nil if nothing is shared
}

func newLastLogins(log *slog.Logger) *lastLogins {
	return &lastLogins{log: log, times: map[stateKey]time.Time{}}
}

// record records a login and returns the time of the previous one, or zero if there is none.
func (l *lastLogins) record(key stateKey, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.times[key]
	l.times[key] = now
	if l.store != nil {
		if l.unsaved[key.tenant] == nil {
			l.unsaved[key.tenant] = map[string]time.Time{}
		}
		l.unsaved[key.tenant][key.user] = now
	}
	return before
}

// of returns the time of the last login of a user, or zero if it is unknown.
func (l *lastLogins) of(key stateKey) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times[key]
}

// ShareLogins lets replicas share the last logins through a store, until ctx ends. They are written every few seconds,
// so that no login waits for it.
func (r *Registry) ShareLogins(ctx context.Context, s *shared.Store) {
	l := r.lastLogins
	l.mu.Lock()
	l.store, l.unsaved = s, map[string]map[string]time.Time{}
	l.mu.Unlock()
	s.Watch(loginsPrefix, l.changed)
	ticker := time.NewTicker(loginsInterval)
	defer ticker.Stop()
	for failed := false; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		err := l.write(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			l.log.Warn("last logins not shared with other replicas; retrying", "err", err)
		}
		failed = err != nil
	}
}

// changed applies changes of the store.
func (l *lastLogins) changed(changes []shared.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		tenant, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(c.Name, loginsPrefix))
		var times map[string]time.Time
		if err != nil || c.Value == nil || json.Unmarshal(c.Value, &times) != nil {
			continue
		}
		for user, at := range times {
			if key := (stateKey{string(tenant), user}); at.After(l.times[key]) {
				l.times[key] = at
			}
		}
	}
}

// write adds the logins of this replica to the store. After an error, the logins are written by the next call.
func (l *lastLogins) write(ctx context.Context) error {
	l.mu.Lock()
	unsaved := l.unsaved
	l.unsaved = map[string]map[string]time.Time{}
	l.mu.Unlock()
	for tenant, logins := range unsaved {
		item := loginsPrefix + base64.RawURLEncoding.EncodeToString([]byte(tenant))
		err := l.store.Update(ctx, item, func(value []byte) ([]byte, error) { return addLogins(value, logins) })
		if err != nil {
			l.restore(unsaved)
			return err
		}
		delete(unsaved, tenant)
	}
	return nil
}

// restore adds logins that could not be written to the unsaved ones.
func (l *lastLogins) restore(unsaved map[string]map[string]time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for tenant, logins := range unsaved {
		newer := l.unsaved[tenant]
		maps.Copy(logins, newer)
		l.unsaved[tenant] = logins
	}
}

// addLogins returns the value of an item with logins added.
func addLogins(value []byte, logins map[string]time.Time) ([]byte, error) {
	var times map[string]time.Time
	if json.Unmarshal(value, &times) != nil || times == nil {
		times = map[string]time.Time{}
	}
	for user, at := range logins {
		if at = at.UTC().Truncate(time.Second); at.After(times[user]) {
			times[user] = at
		}
	}
	latest := slices.SortedFunc(maps.Keys(times), func(a, b string) int {
		return cmp.Or(times[b].Compare(times[a]), cmp.Compare(a, b))
	})
	for kept := maxSharedLogins; ; kept /= 2 {
		for _, user := range latest[min(kept, len(latest)):] {
			delete(times, user)
		}
		if text, err := json.Marshal(times); err != nil || len(text) <= maxLoginsSize {
			return text, err
		}
	}
}
