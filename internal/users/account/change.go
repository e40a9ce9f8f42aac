package account

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// A directory is the tenants of one configuration. It does not change.
type directory struct {
	tenants map[string]*Tenant
	hosts   map[string]*Tenant
	users   map[string]*User   // by the names that only one tenant has
	removed map[string]*Tenant // that the configuration no longer has, as long as they have sessions

	certificates certificates   // of all clients
	files        driver.Options // what the file systems of all users have in common
	settings     settings
}

// settings are those of the server that tenants depend on.
type settings struct {
	bundle              *i18n.Bundle
	defaultLanguage     language.Tag
	clientCertificates  config.ClientCertificates
	requireSessionReuse bool
	times               config.TimeLimits
}

// A Change is a configuration that replaces the one before. Tenants that are equal stay what they are. The others
// keep what belongs to no configuration: the sessions that count for limits, what is counted for quotas, passwords
// that were right recently, and the last login. So do tenants and users that come back while sessions from before
// their removal live.
type Change struct {
	// Unsuited are buckets that were verified for other users. Reuse none of them, and prepare again.
	Unsuited []*s3client.Bucket
	// Quotas are new, so that they must be counted. Apply adds those of users whom a source brought.
	Quotas []*Quota

	registry *Registry
	next     *directory
	hashes   *passwordhash.Set
	apply    []func()
}

// Prepare reads a valid configuration as [NewRegistry] does, and changes nothing. A tenant is equal if the
// configuration has the same [config.Tenant], and its bucket, its sink of events and what it takes from the server
// are the same.
func (r *Registry) Prepare(
	cfg *config.Config, bundle *i18n.Bundle, buckets map[string]*s3client.Bucket, sinks map[string]EventSink,
	files driver.Options,
) (*Change, error) {
	before := r.current.Load()
	d := &directory{
		tenants: make(map[string]*Tenant, len(cfg.Tenants)), hosts: map[string]*Tenant{}, users: map[string]*User{},
		files:        files,
		certificates: before.certificates,
		settings: settings{
			bundle: bundle, defaultLanguage: cfg.DefaultLanguage, clientCertificates: cfg.TLS.ClientCertificates,
			requireSessionReuse: cfg.TLS.RequireSessionReuse,
			times: config.TimeLimits{IdleTimeout: cfg.IdleTimeout,
				CommandTimeout: cfg.Limits.CommandTimeout},
		},
	}
	c := &Change{registry: r, next: d, apply: []func(){func() { r.throttle.SetLongest(cfg.Limits.FailedLoginDelay) }}}
	var err error
	if c.hashes, err = passwordhash.NewSet(hashesOf(cfg)); err != nil {
		return nil, err
	}
	if before.settings.clientCertificates != d.settings.clientCertificates {
		if d.certificates, err = newCertificates(d.settings.clientCertificates, r.log); err != nil {
			return nil, err
		}
	}
	for name, tc := range cfg.Tenants {
		t := before.tenants[name]
		if t == nil || t.Tenant != tc || before.settings != d.settings || t.bucket != buckets[name] ||
			t.events != sinks[name] {
			if t, err = c.tenant(cfg, name, buckets[name], sinks[name], cmp.Or(t, before.removed[name])); err != nil {
				return nil, err
			}
		}
		d.tenants[name] = t
		for _, host := range tc.Hosts {
			d.hosts[host] = t
		}
		for name, u := range t.users {
			if _, taken := d.users[name]; taken {
				d.users[name] = nil
				continue
			}
			d.users[name] = u
		}
	}
	return c, nil
}

// tenant is a tenant, new or in the place of old.
func (c *Change) tenant(
	cfg *config.Config, name string, b *s3client.Bucket, sink EventSink, old *Tenant,
) (*Tenant, error) {
	r, d, tc := c.registry, c.next, cfg.Tenants[name]
	t, err := newTenant(cfg, name, tc, d.settings.bundle)
	if err != nil {
		return nil, err
	}
	if old == nil {
		old = &Tenant{}
	}
	t.bucket, t.events = b, sink
	t.scope = c.scope(t.scope, old.scope)
	t.quota = c.quota(newQuota(b, b.Prefix, "", int64(tc.Quota)), old.quota)
	t.certificates = d.certificates
	if shown := tc.TLS.ClientCertificatesOf(&cfg.TLS); shown != d.settings.clientCertificates {
		if t.certificates, err = newCertificates(shown, r.log); err != nil {
			return nil, err
		}
	}
	if err := c.external(t, old); err != nil {
		return nil, fmt.Errorf("tenant %s: auth: %w", name, err)
	}
	for name, uc := range tc.Users {
		u := newUser(d.settings.times, t, name, uc)
		c.Unsuited = append(c.Unsuited, u.addUse()...)
		c.user(u, old.known(u.Name))
		if err := r.checkStorage(u, d.files); err != nil {
			return nil, err
		}
		t.users[u.Name] = u
	}
	c.apply = append(c.apply, func() { t.rememberRemoved(old) })
	return t, nil
}

// rememberRemoved remembers those users of the tenant before who are removed and have sessions.
func (t *Tenant) rememberRemoved(old *Tenant) {
	t.removed = map[string]*User{}
	for _, u := range slices.AppendSeq(old.all(), maps.Values(old.removed)) {
		if t.known(u.Name) == nil && u.scope.InUse() {
			t.removed[u.Name] = u
		}
	}
}

// known is the user with a name: one of the configuration, or one who is remembered. It is nil for others.
func (t *Tenant) known(name string) *User {
	return cmp.Or(t.users[name], t.external.known(name), t.removed[name])
}

// all are the users of the configuration, and those whom a source brought as long as the process remembers them.
func (t *Tenant) all() []*User {
	return slices.AppendSeq(slices.Collect(maps.Values(t.users)), maps.Values(t.external.all()))
}

// external gives a tenant its source. The users whom the source before brought keep what they have.
func (c *Change) external(t, old *Tenant) (err error) {
	if t.external, err = newExternal(c.next.settings.times, t.Tenant); err != nil || t.external == nil {
		return err
	}
	c.Unsuited = append(c.Unsuited, newUser(c.next.settings.times, t, "", &config.User{}).addUse()...)
	c.apply = append(c.apply, func() {
		for name, known := range old.external.all() {
			u := newUser(c.next.settings.times, t, name, known.User)
			c.Quotas = append(c.Quotas, u.inherit(known)...)
			t.external.users[name] = u
		}
	})
	return nil
}

// inherit is [Change.user] for a user whom a source brought. It returns the quota that must be counted, if there is
// one.
func (u *User) inherit(old *User) []*Quota {
	c := &Change{}
	c.user(u, old)
	c.run()
	return c.Quotas
}

// user lets a user keep what the one before has, if there is one.
func (c *Change) user(u, old *User) {
	if old == nil {
		u.quota = c.quota(u.quota, nil)
		return
	}
	u.quota, u.scope = c.quota(u.quota, old.quota), c.scope(u.scope, old.scope)
	c.apply = append(c.apply, func() {
		u.lastLogin.Store(old.lastLogin.Load())
		if u.credential.hash == old.credential.hash {
			u.credential.cached.Store(old.credential.cached.Load())
		}
	})
}

// scope is the one before, if there is one, which gets the limits of the next.
func (c *Change) scope(next, old *limits.Scope) *limits.Scope {
	if old == nil {
		return next
	}
	c.apply = append(c.apply, func() { old.Adopt(next) })
	return old
}

// quota is the one before with the next limit, if it counts the same.
func (c *Change) quota(next, old *Quota) *Quota {
	switch {
	case next == nil:
		return nil
	case old != nil && old.bucket == next.bucket && old.prefix == next.prefix:
		c.apply = append(c.apply, func() { old.SetLimit(next.Limit()) })
		return old
	case old != nil && old.bucket.SamePlace(next.bucket) && old.prefix == next.prefix:
		// Other credentials, for example. What sessions with the bucket before store counts.
		limit := next.Limit()
		next.Quota = old.Quota
		c.apply = append(c.apply, func() {
			next.SetLimit(limit)
			next.SetBucket(next.bucket.Client, next.bucket.Name)
		})
		return next
	}
	c.Quotas = append(c.Quotas, next)
	return next
}

// Apply makes the change. Sessions keep the user that they have. Logins from then on, also those that have begun
// before, are to the next tenants.
func (c *Change) Apply() {
	r := c.registry
	r.entering.Lock()
	defer r.entering.Unlock()
	c.run()
	r.verifier.hashes.Store(c.hashes)
	before := r.current.Load()
	c.next.removed = map[string]*Tenant{}
	maps.Copy(c.next.removed, before.removed)
	for name, t := range before.tenants {
		if t != c.next.tenants[name] {
			close(t.replaced)
			c.next.removed[name] = t
		}
	}
	maps.DeleteFunc(c.next.removed, func(name string, t *Tenant) bool {
		return c.next.tenants[name] != nil || !t.scope.InUse()
	})
	r.current.Store(c.next)
}

func (c *Change) run() {
	for _, do := range c.apply {
		do()
	}
}

// hashesOf are the password hashes of all users.
func hashesOf(cfg *config.Config) []string {
	var hashes []string
	for _, tc := range cfg.Tenants {
		for _, uc := range tc.Users {
			hashes = append(hashes, uc.PasswordHash.Reveal())
		}
	}
	return hashes
}
