package tenant

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/account"
	"github.com/babelftp/babelftp/internal/auth"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/limit"
	"github.com/babelftp/babelftp/internal/limits"
	"github.com/babelftp/babelftp/internal/wire"
)

const (
	// maxAsked is how many logins a source decides on at the same time. The others wait, each client in its turn.
	maxAsked = 32
	// maxRemembered is how many users of a source a tenant remembers, about a KiB each.
	maxRemembered = 10000
	// maxNewQuotas is how many quotas of such users may wait until they are counted. Those above it wait for the next count of all.
	maxNewQuotas = 64
)

// external is the users of a tenant whom the configuration does not have.
type external struct {
	server limit.TimeLimits
	source auth.Source
	queue  *limits.Queue[netip.Prefix]

	mu    sync.Mutex
	users map[string]*user // for what all sessions of a user share: the quota, the limits and the last login
}

// newExternal returns nil for a tenant without a source.
func newExternal(server limit.TimeLimits, tc *config.Tenant) (*external, error) {
	source, err := auth.New(&tc.Auth)
	if source == nil || err != nil {
		return nil, err
	}
	return &external{
		server: server, source: source, queue: limits.NewQueue[netip.Prefix](maxAsked), users: map[string]*user{},
	}, nil
}

// all is the users who are remembered, by name; none of a nil one.
func (e *external) all() map[string]*user {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.users)
}

// known is the user with a name who is remembered, or nil.
func (e *external) known(name string) *user {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.users[name]
}

// sourceOf returns the tenant whose source decides on a name that no configured user has, and the name there. The tenant is the one that
// the client has chosen by a host or by user@tenant, or the only tenant, or the only one that a token is for. So the password of one tenant's
// user is for no other tenant. The tenant is nil if there is none.
func (d *directory) sourceOf(host, login, password string) (*tenant, string) {
	t, name := (*tenant)(nil), login
	at := strings.LastIndexByte(login, '@')
	switch {
	case host != "":
		t = d.hosts[wire.NormalizeHost(host)]
		if t != nil {
			name = strings.TrimSuffix(login, "@"+t.Name)
		}
	case at >= 0 && d.tenants[login[at+1:]] != nil:
		t, name = d.tenants[login[at+1:]], login[:at]
	case len(d.tenants) == 1:
		for _, only := range d.tenants {
			t = only
		}
	default:
		t = d.addressee(password)
	}
	if t == nil || t.external == nil {
		return nil, ""
	}
	name = config.NormalizeUser(t.inUTF8(name))
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || t.users[name] != nil {
		return nil, ""
	}
	return t, name
}

// addressee is the only tenant that a token says it is for. Whether that is true, the source of the tenant decides.
func (d *directory) addressee(password string) *tenant {
	var found *tenant
	for _, t := range d.tenants {
		if t.external == nil {
			continue
		}
		if c, ok := t.external.source.(auth.Chooser); ok && c.IsAddressee(password) {
			if found != nil {
				return nil
			}
			found = t
		}
	}
	return found
}

// askSource asks the source of a tenant for a user. The error has no name of a user.
func (r *Registry) askSource(ctx context.Context, client netip.Prefix, who identity, req *account.LoginRequest) (*user, error) {
	t, name := who.source, who.name
	password := t.inUTF8(req.Password)
	if password == "" || !utf8.ValidString(password) { // JSON would make all other bytes equal
		return nil, fmt.Errorf("tenant %q: a password that is empty or no text: %w", t.Name, account.ErrLoginRefused)
	}
	leave, err := t.external.queue.Enter(ctx, client)
	if err != nil {
		return nil, err
	}
	defer leave()
	settings, err := t.external.source.Authenticate(ctx, &auth.Request{
		Tenant: t.Name, User: name, Password: password, Address: wire.AddrOf(req.RemoteAddr).String(), Encrypted: req.Encrypted,
	})
	if err != nil {
		return nil, fmt.Errorf("tenant %q: %w", t.Name, err)
	}
	return r.externalUser(t, name, settings)
}

// externalUser is the user with a name and settings. It is the one before as long as the settings stay. Another one keeps the quota and the limits.
func (r *Registry) externalUser(t *tenant, name string, settings *config.User) (*user, error) {
	e := t.external
	e.mu.Lock()
	defer e.mu.Unlock()
	known := cmp.Or(e.users[name], t.removed[name])
	if known != nil && reflect.DeepEqual(known.settings, settings) && known.tenant == t {
		return known, nil
	}
	u := newUser(e.server, t, name, settings)
	if err := r.checkStorage(u, r.current.Load().files); err != nil {
		return nil, err
	}
	if len(e.users) >= maxRemembered {
		maps.DeleteFunc(e.users, func(_ string, u *user) bool { return !u.scope.InUse() })
	}
	for _, q := range u.inherit(known) {
		select {
		case r.newQuotas <- q:
		default:
		}
	}
	e.users[name] = u
	return u, nil
}
