package account

import (
	"cmp"
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
	// maxShown is how much of the name of a tenant that there is not the log shows, in characters.
	maxShown = 64
)

// A service is the directory or hook of a tenant, or that of the server, which all tenants without one share.
//
// The answer of the server's service names the tenant. Until then the client may have named none, so:
//
//   - The name and the password must be UTF-8: the charset of the tenant is not known.
//   - TLS is required as soon as one of these tenants requires it, so that no password of its users goes in the clear.
//     Whether certificates, networks and sessions suffice is decided as soon as the tenant is known.
//   - Failures count for the name with [anyTenant], also if the answer has named the tenant.
//   - A name that one of the tenants has is never asked. Its refusal takes as long as that of the service.
//
// An answer without a tenant, or with another one than the client has chosen by HOST, TLS or user@tenant, is refused
// as a wrong password is, and counts as one. Only the log tells.
type service struct {
	source   auth.Source
	ofServer bool
	queue    *schedule.Queue

	mu       sync.Mutex
	refusals []time.Duration // how long the last ones took
}

// external is the users of a tenant who come from a directory or hook.
type external struct {
	*service

	mu    sync.Mutex
	users map[string]*User // by the folded name
}

// maxRefusals is of how many refusals a service knows how long they took.
const maxRefusals = 32

// refused notes how long a refusal of the source took.
func (s *service) refused(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refusals) == maxRefusals {
		s.refusals = s.refusals[1:]
	}
	s.refusals = append(s.refusals, took)
}

// pretend waits for as long as one of the last refusals took. So the time of a refusal does not tell for which names
// the source is not asked. The error is that of ctx.
func (s *service) pretend(ctx context.Context) error {
	s.mu.Lock()
	wait := time.Duration(0)
	if n := len(s.refusals); n > 0 {
		wait = s.refusals[rand.IntN(n)]
	}
	s.mu.Unlock()
	return limits.Sleep(ctx, wait)
}

// newService returns nil where no source is configured.
func newService(cfg *config.Auth, ofServer bool) (*service, error) {
	source, err := auth.New(cfg)
	if source == nil || err != nil {
		return nil, err
	}
	return &service{source: source, ofServer: ofServer, queue: schedule.NewQueue(maxAsked, 0)}, nil
}

// newExternal makes the table of a tenant's users for its own service, or else that of the server. It is nil without
// either.
func newExternal(tc *config.Tenant, ofServer *service) (*external, error) {
	s, err := newService(&tc.Auth, false)
	if err != nil {
		return nil, err
	}
	if s = cmp.Or(s, ofServer); s == nil {
		return nil, nil
	}
	return &external{service: s, users: map[string]*User{}}, nil
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
func (d *directory) asked(addr netip.Addr, host, login string) (t *Tenant, name string) {
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
		name = t.inUTF8(name, addr)
	}
	return t, config.NormalizeUser(name)
}

// serviceOf returns the service that decides on names such as this one where no tenant knows them. It is that of the
// tenant that the client has asked for, so the password of one tenant's user is for no other tenant. Where the client
// has asked for none, it is that of the server. It is nil if there is none, or if it could not take the name. The
// answer does not depend on which users there are.
func (d *directory) serviceOf(host string, t *Tenant, name string) *service {
	if name == "" || len(name) > maxSourceName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return nil
	}
	switch {
	case t == nil && host == "":
		return d.settings.service
	case t == nil || t.external == nil:
		return nil
	}
	return t.external.service
}

// knows reports whether a tenant, or any for nil, has a user of this name in the configuration, in any spelling: a
// service that ignores case would let in a user that the configuration disables.
func (d *directory) knows(t *Tenant, name string) bool {
	known := d.known
	if t != nil {
		known = t.known
	}
	return known[config.FoldUser(name)]
}

// askService asks the service for a user. The error has no name of a user whose password is wrong.
func (r *Registry) askService(
	ctx context.Context, client netip.Prefix, who identity, req *LoginRequest,
) (*User, error) {
	password, ok := passwordFor(who.asked, req)
	if !ok {
		return nil, inTenant(who.asked, fmt.Errorf("a password that is empty or no text: %w", ErrLoginRefused))
	}
	began := time.Now()
	slot, err := who.service.queue.Enter(ctx, schedule.Key{Member: client.String()})
	if err != nil {
		return nil, abandoned(err)
	}
	defer slot.Leave()
	asks := auth.Request{
		User: who.name, Password: password, Address: netaddr.Of(req.RemoteAddr).String(), Encrypted: req.Encrypted,
	}
	if who.asked != nil {
		asks.Tenant = who.asked.Name
	}
	answer, err := who.service.source.Authenticate(ctx, &asks)
	if err != nil {
		if errors.Is(err, ErrLoginRefused) {
			who.service.refused(time.Since(began))
		}
		return nil, inTenant(who.asked, err)
	}
	t, err := r.tenantOf(who, answer.Tenant)
	if err != nil {
		return nil, err
	}
	return r.externalUser(t, who.name, answer.User)
}

// inTenant is an error of a service with the tenant that the client has asked for, if it has.
func inTenant(t *Tenant, err error) error {
	if t == nil {
		return err
	}
	return fmt.Errorf("tenant %q: %w", t.Name, err)
}

// tenantOf is the tenant of a user whose password is right, by the name in the answer of the service. The error of
// another name than the client has asked for, or of one that cannot be, is a [LoginError] with the name of the user.
func (r *Registry) tenantOf(who identity, name string) (*Tenant, error) {
	d := r.current.Load()
	t, why := d.tenants[name], ""
	switch {
	case who.service.ofServer && who.service != d.settings.service:
		return nil, errReplaced
	case name == "" && !who.service.ofServer:
		return who.asked, nil
	case name == "":
		why = `names no tenant: give the entry the attribute of auth.ldap.attributes.tenant, or the answer of the hook "tenant"`
	case who.asked != nil && who.asked.Name == name:
		return who.asked, nil
	case t == nil:
		why = fmt.Sprintf("names the tenant %.*q, which is not configured: correct the name, or add the tenant", maxShown, name)
	case who.asked != nil:
		why = fmt.Sprintf("names the tenant %q, and the client has asked for %q", name, who.asked.Name)
	case t.external.service != who.service:
		why = fmt.Sprintf("names the tenant %q, which has an auth of its own that decides alone", name)
	default:
		return t, nil
	}
	return nil, &LoginError{User: who.name, Err: fmt.Errorf("the password is right, but auth %s: %w", why, ErrWrongTenant)}
}

// passwordFor is the password that the service would be asked with, and false if it is not asked. The client may have
// asked for no tenant (nil).
func passwordFor(t *Tenant, req *LoginRequest) (password string, ok bool) {
	password = req.Password
	if t != nil {
		password = t.inUTF8(password, netaddr.Of(req.RemoteAddr))
	}
	return password, password != "" && utf8.ValidString(password) // JSON would make all other bytes equal
}

// pretend lets the refusal of a configured user take as long as one of another name for which the client would have
// asked the service.
func (r *Registry) pretend(ctx context.Context, who identity, req *LoginRequest) error {
	if who.service == nil || who.asks() || who.asked != nil && who.asked.accepts(req.Certificates) != nil {
		return nil
	}
	if _, ok := passwordFor(who.asked, req); !ok {
		return nil
	}
	return who.service.pretend(ctx)
}

// externalUser is the user with a name and settings. It is the one before as long as the settings stay.
func (r *Registry) externalUser(t *Tenant, name string, settings *config.User) (*User, error) {
	r.entering.RLock()
	defer r.entering.RUnlock()
	if t.isReplaced() || t.known[config.FoldUser(name)] {
		return nil, errReplaced // the limits of the next tenant count, or its user of the name
	}
	e := t.external
	e.mu.Lock()
	defer e.mu.Unlock()
	key := config.FoldUser(name)
	if known := e.users[key]; known != nil && known.Name == name && reflect.DeepEqual(known.User, settings) {
		return known, nil
	}
	u := newUser(t, name, settings)
	u.key = key
	if err := r.checkStorage(u, r.current.Load().files); err != nil {
		return nil, err
	}
	if len(e.users) >= maxRemembered {
		r.forgetIdle(t)
	}
	e.users[key] = u
	u.use(r.states)
	r.quotas(u) // begins to count a new one
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
