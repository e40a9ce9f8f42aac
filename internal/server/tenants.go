package server

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/control"
)

// directory is the tenants and their users. It is the control connection's backend.
type directory struct {
	tenants map[string]*tenant
	hosts   map[string]*tenant
	users   map[string]*user // by the names that only one tenant has

	verifier *verifier
	uploads  driver.Options // what the uploads of all users have in common
	log      *slog.Logger
}

var _ control.Backend = (*directory)(nil)

type tenant struct {
	control.Tenant
	bucket *bucket
	users  map[string]*user
}

type user struct {
	tenant     *tenant
	name       string
	credential credential
	prefix     string // of the keys that the user sees
	home       string
	may        permissions
}

// newDirectory takes the tenants from a valid configuration; buckets has one for each.
func newDirectory(cfg *config.Config, bundle *i18n.Bundle, buckets map[string]*bucket) *directory {
	d := &directory{tenants: map[string]*tenant{}, hosts: map[string]*tenant{}, users: map[string]*user{}}
	owners := map[string]int{} // of a name
	for name, tc := range cfg.Tenants {
		t := &tenant{
			Tenant: control.Tenant{Name: name, DefaultLanguage: offered(bundle, tc.DefaultLanguage), Greeting: greetings(tc)},
			bucket: buckets[name],
			users:  map[string]*user{},
		}
		d.tenants[name] = t
		for _, host := range tc.Hosts {
			d.hosts[host] = t
		}
		for name, uc := range tc.Users {
			u := newUser(t, tc, name, uc)
			t.users[u.name] = u
			d.users[u.name] = u
			owners[u.name]++
		}
	}
	maps.DeleteFunc(d.users, func(name string, _ *user) bool { return owners[name] > 1 })
	return d
}

func newUser(t *tenant, tc *config.Tenant, name string, uc *config.User) *user {
	granted := uc.Permissions
	if granted == nil {
		granted = config.AllPermissions()
	}
	prefix := tc.Prefix
	if root := strings.Trim(uc.Root, "/"); root != "" {
		prefix += root + "/"
	}
	u := &user{
		tenant: t,
		name:   config.NormalizeUser(name),
		prefix: prefix,
		home:   uc.Home,
		may:    func(p config.Permission) bool { return slices.Contains(granted, p) },
	}
	u.credential.hash = uc.PasswordHash.Reveal()
	return u
}

// offered is the language of the catalogues that fits tag.
func offered(bundle *i18n.Bundle, tag language.Tag) language.Tag {
	match, err := bundle.Negotiate(tag.String())
	if err != nil {
		return language.Und
	}
	return match.Tag
}

func greetings(tc *config.Tenant) map[string]string {
	texts := make(map[string]string, len(tc.Greeting))
	for tag, text := range tc.Greeting {
		texts[tag.String()] = text
	}
	return texts
}

// Host implements [control.Backend].
func (d *directory) Host(name string) (*control.Tenant, bool) {
	t, ok := d.hosts[config.NormalizeHost(name)]
	if !ok {
		return nil, false
	}
	return &t.Tenant, true
}

// find returns the user who logs in with name at a virtual host, or without one (""), and nil if there is none.
//
// A host chooses the tenant, and user@tenant may name no other. Without one it is user@tenant, or a name that only one tenant has.
// A valid configuration has no name that means two users.
func (d *directory) find(host, name string) *user {
	name = config.NormalizeUser(name)
	at := strings.LastIndexByte(name, '@')
	if host != "" {
		t, ok := d.hosts[config.NormalizeHost(host)]
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
	if u := d.users[name]; u != nil {
		return u
	}
	if at >= 0 {
		if t := d.tenants[name[at+1:]]; t != nil {
			return t.users[name[:at]]
		}
	}
	return nil
}

// Login implements [control.Backend].
func (d *directory) Login(ctx context.Context, req *control.LoginRequest) (*control.Login, error) {
	u := d.find(req.Host, req.User)
	var c *credential
	if u != nil {
		c = &u.credential
	}
	right, err := d.verifier.check(ctx, c, req.Password)
	if err != nil {
		return nil, err
	}
	if !right {
		return nil, control.ErrLoginRefused
	}
	return &control.Login{User: u.name, Tenant: &u.tenant.Tenant, Storage: d.storage(ctx, u, req), Home: u.home}, nil
}

// storage is what a user sees of the tenant's bucket for the time of ctx.
func (d *directory) storage(ctx context.Context, u *user, req *control.LoginRequest) control.Storage {
	opts := d.uploads
	opts.Prefix = u.prefix
	opts.BeforeCommit = req.BeforeCommit
	opts.Logger = d.log.With("tenant", u.tenant.Name, "user", u.name)
	bucket := driver.New(ctx, u.tenant.bucket.client, u.tenant.bucket.name, &opts)
	return &guarded{storage: &homed{Storage: bucket, home: u.home}, may: u.may}
}
