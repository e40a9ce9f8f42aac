package account

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/pathname"
	shared "github.com/babelftp/babelftp/internal/storage/state"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/users/bans"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// A Registry holds the tenants and their users, and implements [Backend]. A [Change] replaces them while the registry
// is in use.
type Registry struct {
	current atomic.Pointer[tenantTable]
	// loginMu is read-locked while a login is counted, and locked while a change is applied.
	loginMu sync.RWMutex

	states     *states
	lastLogins *lastLogins
	sessions   tenantSessions
	verifier   *verifier
	rehasher   *rehasher
	usages     *usages
	throttle   *limits.Throttle[netip.Prefix, string] // throttles logins by [limits.Network] and identity
	endings    view.EndingUploads
	bans       *bans.List
	shared     *shared.Store // nil without shared state
	log        *slog.Logger
}

var _ Backend = (*Registry)(nil)

// An EventSink records the files that users of a tenant store, delete, rename and copy.
type EventSink interface {
	view.Sink
	// Use keeps the sink open for the events of a login until done is called.
	Use() (done func())
}

// NewRegistry returns a registry without tenants; use [Registry.Prepare] to add them. log receives messages about
// users and their files. banned is consulted before a password is checked, and counts the failures.
func NewRegistry(log *slog.Logger, banned *bans.List) *Registry {
	r := &Registry{
		states:     &states{all: map[stateKey]*state{}},
		lastLogins: newLastLogins(log),
		sessions:   tenantSessions{count: map[*Tenant]int{}},
		verifier:   newVerifier(),
		rehasher:   newRehasher(log),
		usages:     newUsages(),
		throttle:   limits.NewThrottle[netip.Prefix, string](0),
		bans:       banned,
		log:        log,
	}
	r.current.Store(&tenantTable{})
	return r
}

// ShareUsers stores the users of tenants with users_store in the shared state. Call it before [Registry.Prepare].
func (r *Registry) ShareUsers(s *shared.Store) { r.shared = s }

// Store returns the store of a tenant, in which users are changed. ok is false if the tenant does not exist.
func (r *Registry) Store(tenant string) (store *usersfile.Store, ok bool) {
	t := r.current.Load().tenants[tenant]
	if t == nil {
		return nil, false
	}
	return t.store, true
}

// newStore returns the store of a tenant. Changes are checked with the current configuration.
func (r *Registry) newStore(name string, t *config.Tenant) *usersfile.Store {
	o := usersfile.Options{Tenant: name, UsersFile: t.UsersFile}
	if t.UsersStore == config.StateStore {
		o.State = r.shared
	}
	o.Check = func(user string, in usersfile.Place, text []byte) error {
		u, err := config.ParseUser(in.Name, text, user, in.Kind == usersfile.InFile)
		if err != nil || u == nil {
			return err
		}
		cfg := r.current.Load().cfg
		if cfg.Tenants[name] == nil {
			return fmt.Errorf("tenant %s does not exist anymore", name)
		}
		return cfg.CheckUser(name, user, u)
	}
	return usersfile.NewStore(o)
}

// Close writes the new password hashes that wait for it, and ends the work in the background.
func (r *Registry) Close() { r.rehasher.close() }

// checkStorage returns an error if [driver.New] would reject the options of a user's file systems.
func (r *Registry) checkStorage(u *User, files driver.Options) error {
	for _, m := range u.mounts {
		opts := r.storageOptions(files, u, m)
		if err := opts.Validate(); err != nil {
			return fmt.Errorf("tenant %s: user %s: directory %s: %w", u.Tenant.Name, u.Name, m.at, err)
		}
	}
	return nil
}

// Host implements [Backend].
func (r *Registry) Host(name string) (*Tenant, bool) {
	t, ok := r.current.Load().hosts[netaddr.NormalizeHost(name)]
	return t, ok
}

// Charset implements [Backend]. The most specific network of all tenants decides. If two tenants have different
// charsets for the same network, the charset is unknown until the client selects a tenant.
func (r *Registry) Charset(addr netip.Addr) (charset *pathname.Encoding) {
	bits := -1
	for _, n := range r.current.Load().charsets {
		switch {
		case !n.Contains(addr) || n.Bits() < bits:
		case n.Bits() > bits:
			bits, charset = n.Bits(), n.charset
		case n.charset.String() != charset.String():
			charset = nil
		}
	}
	return charset
}

// Users returns the names of the users of a tenant, including remembered users of a directory or hook.
func (r *Registry) Users(tenant string) (names []string) {
	t := r.current.Load().tenants[tenant]
	if t == nil {
		return nil
	}
	for _, u := range t.allUsers() {
		names = append(names, u.Name)
	}
	return names
}

// Inspectors returns the inspectors by tenant.
func (r *Registry) Inspectors() map[string]*inspect.Inspector {
	all := map[string]*inspect.Inspector{}
	for name, t := range r.current.Load().tenants {
		if t.inspector != nil {
			all[name] = t.inspector
		}
	}
	return all
}

// A LastLogin is the time of a user's last login, in UTC.
type LastLogin struct {
	Tenant string    `json:"tenant"`
	User   string    `json:"user"`
	Time   time.Time `json:"last_login"`
}

// LastLogins returns the last login of each user, sorted by tenant and user: since the process started, and at other
// replicas after [Registry.ShareLogins].
func (r *Registry) LastLogins() []LastLogin {
	all := []LastLogin{}
	for name, t := range r.current.Load().tenants {
		for _, u := range t.allUsers() {
			if at := r.lastLogins.of(u.stateKey()); !at.IsZero() {
				all = append(all, LastLogin{name, u.Name, at.UTC()})
			}
		}
	}
	slices.SortFunc(all, func(a, b LastLogin) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.User, b.User))
	})
	return all
}

// find returns the user with this login name at a virtual host, or without a host (""). It returns nil if the user is
// unknown. A client without UTF-8 sends the name in the charset that the tenant has for its address.
func (d *tenantTable) find(addr netip.Addr, host, name string) *User {
	if utf8.ValidString(name) {
		u := d.lookUp(host, name)
		if u != nil || !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return u
		}
	}
	var found *User
	for _, t := range d.tenants {
		for _, reading := range readings(name, t.CompatibilityAt(addr).Charset) {
			u := d.lookUp(host, reading)
			if u == nil || u.Tenant != t {
				continue
			}
			if found != nil && found != u {
				return nil // ambiguous: two charsets give two users
			}
			found = u
		}
	}
	return found
}

// isAmbiguous reports whether several tenants have a user with this name.
func (d *tenantTable) isAmbiguous(name string) bool {
	name = config.NormalizeUser(name)
	n := 0
	for _, t := range d.tenants {
		if t.users[name] != nil {
			n++
		}
	}
	return n > 1
}

// lookUp returns the user with a login name in UTF-8.
//
// A host selects the tenant, and user@tenant must not name another one. Without a host, the name is user@tenant or a
// name that only one tenant has. Validation of the configuration ensures that no name matches two users of the files.
func (d *tenantTable) lookUp(host, name string) *User {
	name = config.NormalizeUser(name)
	at := strings.LastIndexByte(name, '@')
	if host != "" {
		t, ok := d.hosts[netaddr.NormalizeHost(host)]
		if !ok {
			return nil
		}
		if u := t.users[name]; u != nil {
			return u
		}
		if at >= 0 && name[at+1:] == t.Name {
			return t.users[name[:at]]
		}
		return nil
	}
	u, known := d.users[name]
	if !known && d.serviceFor("", d.only, name) == nil { // a service could have a user with this name
		u = d.usersOfResources[name]
	}
	if u != nil {
		return u
	}
	if at >= 0 {
		if t := d.tenants[name[at+1:]]; t != nil {
			return t.users[name[:at]]
		}
	}
	return nil
}
