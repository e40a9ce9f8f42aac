package account

import (
	"fmt"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// A tenantTable holds the tenants of one configuration. It is immutable.
//
// Tenants that are custom resources never change what a name means for others. Without a host, a name belongs to the
// tenants of the files and the service of the server first, and to resources only if neither can have it.
type tenantTable struct {
	tenants map[string]*Tenant
	hosts   map[string]*Tenant
	only    *Tenant          // the tenant of clients that request none, if there is only one
	users   map[string]*User // by name, for names that only one tenant has; nil for the others
	known   map[string]bool  // the folded names of the users of all tenants in the files
	// usersOfResources is like users for custom resources.
	usersOfResources map[string]*User

	certificates certificates // the policy of the server
	cfg          *config.Config
	files        driver.Options // common to the file systems of all users
	settings     serverSettings
	charsets     []networkCharset // charsets for networks of all tenants in the files
	// strictTLS reports whether the server has a service that may assign users to a tenant that requires TLS.
	strictTLS bool
}

// A networkCharset is the charset of the clients in a network.
type networkCharset struct {
	value.Network
	charset *pathname.Encoding
}

// serverSettings are the settings of the server that tenants depend on. If they change, all tenants are rebuilt.
type serverSettings struct {
	bundle             *i18n.Bundle
	defaultLanguage    language.Tag
	clientCertificates config.ClientCertificates
	auth               *config.Auth // auth section of the server
	service            *service     // built from auth; nil if auth is nil
}

// A Change replaces the current configuration by another one. Tenants that did not change are kept as they are; the
// others are rebuilt. State that outlives a configuration, such as counted sessions, is carried over by Apply.
type Change struct {
	// Unverified are the buckets that were verified for other requirements than the users have now. If there are any,
	// the caller must create them again instead of reusing them, and call Prepare again.
	Unverified []*s3client.Bucket

	registry *Registry
	cfg      *config.Config
	next     *tenantTable
	hashes   *passwordhash.Set
}

// Prepare builds the tenants of a valid configuration without applying them. buckets has an entry for each tenant, in
// which Prepare records the permissions and overwrite modes that the users need. sinks has an entry for each tenant
// with a webhook. files holds the options common to the file systems of all users.
//
// A tenant is kept if its [config.Tenant], its bucket, its sink and the [serverSettings] are unchanged. Errors name
// the tenant, for example if bundle does not support its languages, or [driver.New] would reject the options of its
// users.
func (r *Registry) Prepare(
	cfg *config.Config, bundle *i18n.Bundle, buckets map[string]*s3client.Bucket, sinks map[string]EventSink,
	files driver.Options,
) (*Change, error) {
	c, err := r.build(cfg, bundle, buckets, sinks, files)
	if err != nil {
		return nil, err
	}
	if c.hashes, err = passwordhash.NewSet(hashesOf(cfg)); err != nil {
		return nil, err
	}
	return c, nil
}

// Check returns the error that Prepare would return because of the tenants of a configuration.
func (r *Registry) Check(
	cfg *config.Config, bundle *i18n.Bundle, buckets map[string]*s3client.Bucket, sinks map[string]EventSink,
	files driver.Options,
) error {
	_, err := r.build(cfg, bundle, buckets, sinks, files)
	return err
}

// build builds the tenants of a configuration.
func (r *Registry) build(
	cfg *config.Config, bundle *i18n.Bundle, buckets map[string]*s3client.Bucket, sinks map[string]EventSink,
	files driver.Options,
) (*Change, error) {
	before := r.current.Load()
	d := &tenantTable{
		tenants: make(map[string]*Tenant, len(cfg.Tenants)), hosts: map[string]*Tenant{}, users: map[string]*User{},
		usersOfResources: map[string]*User{},
		known:            map[string]bool{},
		cfg:              cfg,
		files:            files,
		certificates:     before.certificates,
		settings: serverSettings{
			bundle: bundle, defaultLanguage: cfg.DefaultLanguage, clientCertificates: cfg.TLS.ClientCertificates,
			auth: cfg.ServerAuth(), service: before.settings.service,
		},
	}
	c := &Change{registry: r, cfg: cfg, next: d}
	var err error
	if before.settings.clientCertificates != d.settings.clientCertificates {
		if d.certificates, err = newCertificates(d.settings.clientCertificates, r.log); err != nil {
			return nil, err
		}
	}
	if before.settings.auth != d.settings.auth {
		d.settings.service = nil
		if d.settings.auth != nil {
			if d.settings.service, err = newService(d.settings.auth, true); err != nil {
				return nil, fmt.Errorf("auth: %w", err)
			}
		}
	}
	for name, tc := range cfg.Tenants {
		t := before.tenants[name]
		if t == nil || t.Tenant != tc || before.settings != d.settings || t.bucket != buckets[name] ||
			t.events != sinks[name] {
			if t, err = c.tenant(name, buckets[name], sinks[name]); err != nil {
				return nil, err
			}
		}
		d.add(t)
	}
	d.only = d.onlyTenant()
	return c, nil
}

// onlyTenant returns the only tenant of the files, or the only custom resource if the files have none, or nil.
func (d *tenantTable) onlyTenant() (only *Tenant) {
	files := map[string]*Tenant{}
	for name, t := range d.tenants {
		if t.Namespace == "" {
			files[name] = t
		}
	}
	if len(files) == 0 {
		files = d.tenants
	}
	if len(files) == 1 {
		for _, only = range files {
			return only
		}
	}
	return nil
}

// add adds a tenant and indexes its hosts and users.
func (d *tenantTable) add(t *Tenant) {
	d.tenants[t.Name] = t
	for _, host := range t.Hosts {
		d.hosts[host] = t
	}
	users := d.users
	if t.Namespace != "" {
		users = d.usersOfResources
	}
	for name, u := range t.users {
		if _, taken := users[name]; taken {
			u = nil
		}
		users[name] = u
	}
	if t.Namespace == "" {
		d.addFiles(t)
	}
}

// addFiles indexes what a tenant of the files changes for clients that have not selected a tenant.
func (d *tenantTable) addFiles(t *Tenant) {
	if t.external != nil && t.external.service == d.settings.service && t.TLS.Required != nil && *t.TLS.Required {
		d.strictTLS = true
	}
	for network, c := range t.CompatibilityByNetwork {
		if c.Charset.Encoding != nil {
			d.charsets = append(d.charsets, networkCharset{network, c.Charset.Encoding})
		}
	}
	for name := range t.users {
		d.known[config.FoldUser(name)] = true
	}
}

// tenant builds a tenant of the new configuration.
func (c *Change) tenant(name string, b *s3client.Bucket, sink EventSink) (*Tenant, error) {
	r, d, tc := c.registry, c.next, c.cfg.Tenants[name]
	t, err := newTenant(c.cfg, name, tc, d.settings.bundle)
	if err != nil {
		return nil, err
	}
	t.bucket, t.events, t.store = b, sink, r.newStore(name, tc)
	t.certificates = d.certificates
	if shown := tc.TLS.ClientCertificatesOf(&c.cfg.TLS); shown != d.settings.clientCertificates {
		if t.certificates, err = newCertificates(shown, r.log); err != nil {
			return nil, err
		}
	}
	if t.external, err = newExternalUsers(tc, d.settings.service); err != nil {
		return nil, fmt.Errorf("tenant %s: auth: %w", name, err)
	}
	if tc.Auth.UsesFTP() && tc.UsersStore == "" {
		if err := usersfile.Writable(tc.UsersFile); err != nil {
			return nil, fmt.Errorf("tenant %s: auth.ftp stores users in users_file, but %w", name, err)
		}
	}
	if t.external != nil {
		anyone := newUser(t, "", &config.User{})
		c.Unverified = append(c.Unverified, anyone.addUse()...)
	}
	for name, uc := range tc.Users {
		u := newUser(t, name, uc)
		c.Unverified = append(c.Unverified, u.addUse()...)
		if err := r.checkStorage(u, d.files); err != nil {
			return nil, err
		}
		t.users[u.Name] = u
		t.known[config.FoldUser(u.Name)] = true
	}
	return t, nil
}

// Apply makes the new configuration current. Sessions in progress keep their user, but the new limits and quotas
// apply to them, and sessions of users whose account is disabled or has expired are ended. Logins that are in
// progress continue with the new tenants.
func (c *Change) Apply() {
	r, next := c.registry, c.next
	r.loginMu.Lock()
	defer r.loginMu.Unlock()
	before := r.current.Load()
	for name, t := range next.tenants {
		if old := before.tenants[name]; old != t {
			t.use(r.states, old)
			t.warnListable(r.log)
		}
	}
	for name, t := range before.tenants {
		if t != next.tenants[name] {
			close(t.replaced)
		}
	}
	r.throttle.SetLongest(c.cfg.Limits.FailedLoginDelay)
	r.verifier.use(c.hashes)
	r.current.Store(next)
	r.states.keep(next)
	for _, q := range r.Quotas() {
		q.SetClient(q.bucket.Client, q.bucket.Name) // the credentials may have changed
	}
	closed := next.closedUsers(time.Now())
	r.bans.EndSessions(func(user string) *limits.Error { return closed[user] })
}

// closedUsers returns the users who may not log in, with the reason, by [Owner].
func (d *tenantTable) closedUsers(now time.Time) map[string]*limits.Error {
	found := map[string]*limits.Error{}
	for _, t := range d.tenants {
		for _, u := range t.users {
			if why := u.closedReason(now); why != "" {
				found[u.owner()] = &limits.Error{Tenant: t.Name, Limit: why}
			}
		}
	}
	return found
}

// hashesOf returns the password hashes of all users.
func hashesOf(cfg *config.Config) []string {
	var hashes []string
	for _, tc := range cfg.Tenants {
		for _, uc := range tc.Users {
			hashes = append(hashes, uc.PasswordHash.Reveal())
		}
	}
	return hashes
}
