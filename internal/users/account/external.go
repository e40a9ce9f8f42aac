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
	// maxConcurrentRequests limits the requests in flight to a service. Further logins wait in a queue that is fair
	// to all clients.
	maxConcurrentRequests = 32
	// maxRemembered limits the users of a service that a tenant keeps in memory. One takes about a KiB.
	maxRemembered = 10000
	// maxSourceName is the longest user name, in bytes, that is passed to a service. Longer names are refused without
	// a request, because a service that fails on them would appear to be down. No mail address is this long.
	maxSourceName = 512
	// maxShown is the number of characters of an unknown tenant's name that are logged.
	maxShown = 64
)

// A service authenticates the users of a tenant who are not in the configuration: a directory, a hook or an old FTP
// server. A tenant has a service of its own, or shares the service of the server.
//
// The response of the server's service names the tenant of the user. Before the response, the client may not have
// selected a tenant, and therefore:
//
//   - The name and the password must be UTF-8, because the charset of the tenant is unknown.
//   - TLS is required if any tenant that the service may name requires it, so that passwords of its users are never
//     sent in the clear. Certificates, networks and limits of the tenant are checked after the response.
//   - Failures are counted for the name with [anyTenant], even if the response names a tenant.
//   - The service is never asked about a name that a tenant has in the configuration. Refusing such a name takes as
//     long as a refusal by the service.
//
// A response without a tenant, or with another tenant than the client selected by HOST, TLS or user@tenant, is
// treated like a wrong password. Only the log shows the difference.
type service struct {
	source   auth.Source
	ofServer bool
	queue    *schedule.Queue

	mu       sync.Mutex
	refusals []time.Duration // durations of the most recent refusals
}

// externalUsers holds the users of a tenant who are authenticated by a service.
type externalUsers struct {
	*service

	mu    sync.Mutex
	users map[string]*User // by folded name
}

// maxRefusals is the number of durations that a service keeps.
const maxRefusals = 32

// recordRefusal records how long the source took to refuse a login.
func (s *service) recordRefusal(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refusals) == maxRefusals {
		s.refusals = s.refusals[1:]
	}
	s.refusals = append(s.refusals, took)
}

// imitateRefusal waits for as long as one of the recent refusals took, so that the time does not reveal for which
// names the source is not asked. It returns an error only if ctx is done.
func (s *service) imitateRefusal(ctx context.Context) error {
	s.mu.Lock()
	wait := time.Duration(0)
	if n := len(s.refusals); n > 0 {
		wait = s.refusals[rand.IntN(n)]
	}
	s.mu.Unlock()
	return limits.Sleep(ctx, wait)
}

// newService returns nil if cfg has no source.
func newService(cfg *config.Auth, ofServer bool) (*service, error) {
	source, err := auth.New(cfg)
	if source == nil || err != nil {
		return nil, err
	}
	return &service{source: source, ofServer: ofServer, queue: schedule.NewQueue(maxConcurrentRequests, 0)}, nil
}

// newExternalUsers returns an empty table for the service of the tenant, or else the service of the server. It
// returns nil if there is neither.
func newExternalUsers(tc *config.Tenant, ofServer *service) (*externalUsers, error) {
	s, err := newService(&tc.Auth, false)
	if err != nil {
		return nil, err
	}
	if s = cmp.Or(s, ofServer); s == nil {
		return nil, nil
	}
	return &externalUsers{service: s, users: map[string]*User{}}, nil
}

// snapshot returns the remembered users by folded name. e may be nil.
func (e *externalUsers) snapshot() map[string]*User {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.users)
}

// requestedTenant returns the tenant that the client selects by a host or by user@tenant, or the only tenant, with the
// user name in that tenant. If no tenant is selected, it returns nil and the whole name. The result does not depend on
// which users exist.
func (d *tenantTable) requestedTenant(addr netip.Addr, host, login string) (t *Tenant, name string) {
	name = login
	at := strings.LastIndexByte(login, '@')
	switch {
	case host != "":
		if t = d.hosts[netaddr.NormalizeHost(host)]; t != nil {
			name = strings.TrimSuffix(login, "@"+t.Name)
		}
	case at >= 0 && d.tenants[login[at+1:]] != nil:
		t, name = d.tenants[login[at+1:]], login[:at]
	case !d.cfg.TenantsUnknown:
		t = d.only
	}
	if t != nil {
		name = t.toUTF8(name, addr)
	}
	return t, config.NormalizeUser(name)
}

// serviceFor returns the service that authenticates names like this one if no tenant has them in the configuration.
// It is the service of the tenant that the client requested, so that a password is never sent to the service of
// another tenant. If the client requested no tenant, it is the service of the server. It is nil without a service, or
// if a service could not handle the name. The result does not depend on which users exist.
func (d *tenantTable) serviceFor(host string, t *Tenant, name string) *service {
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

// knows reports whether the tenant, or any tenant of the files if t is nil, has a user with this name in the
// configuration, in any spelling. Otherwise a service that ignores case could let in a user whom the configuration
// disables.
func (d *tenantTable) knows(t *Tenant, name string) bool {
	known := d.known
	if t != nil {
		known = t.known
	}
	return known[config.FoldUser(name)]
}

// askService authenticates a user with the service. For a wrong password, the error does not contain the user name.
func (r *Registry) askService(
	ctx context.Context, client netip.Prefix, who identity, req *LoginRequest,
) (*User, error) {
	password, ok := passwordFor(who.requested, req)
	if !ok {
		return nil, withTenant(who.requested, fmt.Errorf("the password is empty or not valid UTF-8: %w", ErrLoginRefused))
	}
	began := time.Now()
	slot, err := who.service.queue.Acquire(ctx, schedule.Key{Member: client.String()})
	if err != nil {
		return nil, abandoned(err)
	}
	defer slot.Release()
	asks := auth.Request{
		User: who.name, Password: password, Address: netaddr.Of(req.RemoteAddr).String(), Encrypted: req.Encrypted,
	}
	if who.requested != nil {
		asks.Tenant = who.requested.Name
	}
	answer, err := who.service.source.Authenticate(ctx, &asks)
	if err != nil {
		if errors.Is(err, ErrLoginRefused) {
			who.service.recordRefusal(time.Since(began))
		}
		return nil, withTenant(who.requested, err)
	}
	t, err := r.tenantOf(who, answer.Tenant)
	if err != nil {
		return nil, err
	}
	return r.externalUser(t, who.name, answer.User)
}

// withTenant adds the tenant that the client requested, if any, to an error of a service.
func withTenant(t *Tenant, err error) error {
	if t == nil {
		return err
	}
	return fmt.Errorf("tenant %q: %w", t.Name, err)
}

// tenantOf returns the tenant of an authenticated user by the name in the response of the service. If the name is not
// the requested one, or is unknown, the error is a [LoginError] with the user name.
func (r *Registry) tenantOf(who identity, name string) (*Tenant, error) {
	d := r.current.Load()
	t, why := d.tenants[name], ""
	switch {
	case who.service.ofServer && who.service != d.settings.service:
		return nil, errReplaced
	case name == "" && !who.service.ofServer:
		return who.requested, nil
	case name == "":
		why = `names no tenant: add the attribute of auth.ldap.attributes.tenant to the entry, or "tenant" to the response of the hook`
	case who.requested != nil && who.requested.Name == name:
		return who.requested, nil
	case t == nil:
		why = fmt.Sprintf("names the tenant %.*q, which is not configured: correct the name, or add the tenant", maxShown, name)
	case who.requested != nil:
		why = fmt.Sprintf("names the tenant %q, and the client requested %q", name, who.requested.Name)
	case t.external.service != who.service:
		why = fmt.Sprintf("names the tenant %q, which has an auth of its own", name)
	default:
		return t, nil
	}
	return nil, &LoginError{User: who.name, Err: fmt.Errorf("the password is right, but auth %s: %w", why, ErrWrongTenant)}
}

// passwordFor returns the password in the form that is sent to the service, and false if it cannot be sent. t is nil
// if the client requested no tenant.
func passwordFor(t *Tenant, req *LoginRequest) (password string, ok bool) {
	password = req.Password
	if t != nil {
		password = t.toUTF8(password, netaddr.Of(req.RemoteAddr))
	}
	return password, password != "" && utf8.ValidString(password) // JSON would encode all invalid bytes alike
}

// imitateRefusal delays the refusal of a configured user for as long as the service would take to refuse another name
// of this client.
func (r *Registry) imitateRefusal(ctx context.Context, who identity, req *LoginRequest) error {
	if who.service == nil || who.usesService() ||
		who.requested != nil && who.requested.verify(req.Certificates) != nil {
		return nil
	}
	if _, ok := passwordFor(who.requested, req); !ok {
		return nil
	}
	return who.service.imitateRefusal(ctx)
}

// externalUser returns the user with this name and these settings. It returns the remembered user if the settings are
// unchanged.
func (r *Registry) externalUser(t *Tenant, name string, settings *config.User) (*User, error) {
	r.loginMu.RLock()
	defer r.loginMu.RUnlock()
	if t.isReplaced() || t.known[config.FoldUser(name)] {
		return nil, errReplaced // the limits of the new tenant apply, or the user is now in the configuration
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
	r.quotas(u) // starts counting the objects of a new quota
	return u, nil
}

// forgetIdle forgets the users of a service who have no session. The caller holds the lock of the table.
func (r *Registry) forgetIdle(t *Tenant) {
	for name, u := range t.external.users {
		if r.states.drop(u) {
			delete(t.external.users, name)
		}
	}
}
