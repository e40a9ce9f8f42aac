package account

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/schedule"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/users/auth"
)

const (
	// maxAsked is how many logins a source decides on at the same time. The others wait, each client in its turn.
	maxAsked = 32
	// maxRemembered is how many users of a source a tenant remembers, about a KiB each.
	maxRemembered = 10000
	// maxSourceName is how long a name may be, in bytes, for which a source is asked. No mail address is as long. A
	// source that cannot take longer names would seem to be down.
	maxSourceName = 512
	// maxNewQuotas is how many quotas of such users may wait until they are counted. Those above it wait for the next
	// count of all.
	maxNewQuotas = 64
)

// external is the users of a tenant who come from a directory or hook.
type external struct {
	source auth.Source
	queue  *schedule.Queue

	mu       sync.Mutex
	users    map[string]*User // for what all sessions of a user share: the quota, the limits and the last login
	refusals []time.Duration  // how long the last ones took
}

// maxRefusals is of how many refusals a tenant knows how long they took.
const maxRefusals = 32

// refused notes how long a refusal of the source took.
func (e *external) refused(took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.refusals) == maxRefusals {
		e.refusals = e.refusals[1:]
	}
	e.refusals = append(e.refusals, took)
}

// pretend waits for as long as one of the last refusals took. So the time of a refusal does not tell for which names
// the source is not asked. The error is that of ctx.
func (e *external) pretend(ctx context.Context) error {
	e.mu.Lock()
	wait := time.Duration(0)
	if n := len(e.refusals); n > 0 {
		wait = e.refusals[rand.IntN(n)]
	}
	e.mu.Unlock()
	return limits.Sleep(ctx, wait)
}

// newExternal returns nil for a tenant without a source.
func newExternal(tc *config.Tenant) (*external, error) {
	source, err := auth.New(&tc.Auth)
	if source == nil || err != nil {
		return nil, err
	}
	return &external{
		source: source, queue: schedule.NewQueue(maxAsked, 0), users: map[string]*User{},
	}, nil
}

// all is the users who are remembered, by name; none of a nil one.
func (e *external) all() map[string]*User {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.users)
}

// asked is the tenant that a client names by a host or by user@tenant, or the only tenant, and the name of the user
// there. Without one it is the name alone, and no tenant. The answer does not depend on which users there are.
func (d *directory) asked(host, login string) (t *Tenant, name string) {
	name = login
	at := strings.LastIndexByte(login, '@')
	switch {
	case host != "":
		if t = d.hosts[netaddr.NormalizeHost(host)]; t != nil {
			name = strings.TrimSuffix(login, "@"+t.Name)
		}
	case at >= 0 && d.tenants[login[at+1:]] != nil:
		t, name = d.tenants[login[at+1:]], login[:at]
	case len(d.tenants) == 1:
		for _, only := range d.tenants {
			t = only
		}
	}
	if t != nil {
		name = t.inUTF8(name)
	}
	return t, config.NormalizeUser(name)
}

// sourceOf returns the tenant whose source decides on a name that no configured user has, and the name there. The
// tenant is the one that the client has asked for, so the password of one tenant's user is for no other tenant. It is
// nil if there is none.
func (d *directory) sourceOf(host, login string) (*Tenant, string) {
	t, name := d.asked(host, login)
	if t == nil || t.external == nil {
		return nil, ""
	}
	if name == "" || len(name) > maxSourceName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, unicode.IsControl) || t.users[name] != nil {
		return nil, ""
	}
	return t, name
}

// askSource asks the source of a tenant for a user. The error has no name of a user.
func (r *Registry) askSource(
	ctx context.Context, client netip.Prefix, who identity, req *LoginRequest,
) (*User, error) {
	t, name := who.source, who.name
	password, ok := t.passwordFor(req)
	if !ok {
		return nil, fmt.Errorf("tenant %q: a password that is empty or no text: %w", t.Name, ErrLoginRefused)
	}
	began := time.Now()
	slot, err := t.external.queue.Enter(ctx, schedule.Key{Member: client.String()})
	if err != nil {
		return nil, abandoned(err)
	}
	defer slot.Leave()
	settings, err := t.external.source.Authenticate(ctx, &auth.Request{
		Tenant: t.Name, User: name, Password: password, Address: netaddr.Of(req.RemoteAddr).String(),
		Encrypted: req.Encrypted,
	})
	if err != nil {
		if errors.Is(err, ErrLoginRefused) {
			t.external.refused(time.Since(began))
		}
		return nil, fmt.Errorf("tenant %q: %w", t.Name, err)
	}
	return r.externalUser(t, name, settings)
}

// passwordFor is the password that the source of the tenant would be asked with, and false if the source is not asked.
func (t *Tenant) passwordFor(req *LoginRequest) (password string, ok bool) {
	password = t.inUTF8(req.Password)
	return password, password != "" && utf8.ValidString(password) // JSON would make all other bytes equal
}

// pretend lets the refusal of a configured user take as long as one of another name for which the client would have
// asked the tenant's source.
func (r *Registry) pretend(ctx context.Context, who identity, req *LoginRequest) error {
	if who.user == nil || who.asked == nil || who.asked.external == nil || who.asked.accepts(req.Certificates) != nil {
		return nil
	}
	if _, ok := who.asked.passwordFor(req); !ok {
		return nil
	}
	return who.asked.external.pretend(ctx)
}

// externalUser is the user with a name and settings. It is the one before as long as the settings stay.
func (r *Registry) externalUser(t *Tenant, name string, settings *config.User) (*User, error) {
	r.entering.RLock()
	defer r.entering.RUnlock()
	if t.isReplaced() {
		return nil, errReplaced // the limits of the next tenant count
	}
	e := t.external
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.users[name]; known != nil && reflect.DeepEqual(known.User, settings) {
		return known, nil
	}
	u := newUser(t, name, settings)
	if err := r.checkStorage(u, r.current.Load().files); err != nil {
		return nil, err
	}
	if len(e.users) >= maxRemembered {
		r.forgetIdle(t)
	}
	e.users[name] = u
	if q := u.use(r.states); q != nil {
		select {
		case r.newQuotas <- q:
		default:
		}
	}
	return u, nil
}

// forgetIdle forgets the users of a source who have no session. Their table is locked.
func (r *Registry) forgetIdle(t *Tenant) {
	for name, u := range t.external.users {
		if r.states.drop(u) {
			delete(t.external.users, name)
		}
	}
}
