package config

import (
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

func (v *validator) tenants() {
	p := yamlconf.Path{"tenants"}
	if len(v.cfg.Tenants) == 0 && len(v.cfg.TenantsDir) == 0 { // an empty tenants_dir was already reported
		v.report(p, "is empty: add at least one tenant with its bucket and users")
	}
	tenantName := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	for name, t := range v.cfg.Tenants {
		if !tenantName.MatchString(name) {
			v.report(
				p.Child(name), "%q is not a valid tenant name: write up to 63 ASCII letters, digits, -, _ and .", name)
		}
		t.check(v, p.Child(name))
	}
	v.sharedHosts()
	v.ambiguousUsers()
}

// sharedHosts reports invalid host names and hosts that several tenants have.
func (v *validator) sharedHosts() {
	owners := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(v.cfg.Tenants)) {
		for i, host := range v.cfg.Tenants[name].Hosts {
			p := yamlconf.Path{"tenants", name, "hosts"}.Child(strconv.Itoa(i))
			_, notAddress := netip.ParseAddr(host) // an address is allowed by RFC 7151, section 3.1
			if name, ok := netaddr.ParseHost(host); notAddress != nil && (!ok || name != host) {
				v.report(p, "%q is not a host name: write it like ftp.example.com", host)
				continue
			}
			switch owner, taken := owners[host]; {
			case taken && owner == name:
				v.report(p, "%s is written twice: remove one", host)
			case taken:
				v.report(p,
					"%s is also a host of the tenant %s: remove it from one of them", host,
					owner)
			default:
				owners[host] = name
			}
		}
	}
}

// ambiguousUsers reports user names that are ambiguous if the client does not select a tenant by host.
func (v *validator) ambiguousUsers() {
	type owner struct{ tenant, user string }
	plain := map[string]owner{} // the first tenant with this name
	qualified := map[string]owner{}
	names := slices.Sorted(maps.Keys(v.cfg.Tenants))
	for _, tenant := range names {
		for user := range v.cfg.Tenants[tenant].Users {
			qualified[NormalizeUser(user)+"@"+tenant] = owner{tenant, user}
		}
	}
	for _, tenant := range names {
		t := v.cfg.Tenants[tenant]
		for _, user := range slices.Sorted(maps.Keys(t.Users)) {
			p := yamlconf.Path{"tenants", tenant, "users", user}
			name := NormalizeUser(user)
			if other, taken := qualified[name]; taken {
				v.report(p,
					"%s is also the login name of the user %s of the tenant %s: rename one of them", user,
					other.user, other.tenant)
			}
			first, taken := plain[name]
			switch {
			case !taken:
				plain[name] = owner{tenant, user}
			case first.tenant == tenant:
				v.report(p, "%s and %s differ only in Unicode normalization: remove one", user, first.user)
			case len(t.Hosts) == 0 || len(v.cfg.Tenants[first.tenant].Hosts) == 0:
				v.report(p,
					"the tenant %s has a user with this name too, and %s has no host to distinguish them: give both "+
						"tenants hosts, "+
						"or rename one user", first.tenant, v.hostless(first.tenant, tenant))
			}
		}
	}
}

// CheckUser returns the problems that the configuration would have if this user were added to a tenant.
func (c *Config) CheckUser(tenant, name string, u *User) error {
	t, next := *c.Tenants[tenant], *c
	t.Users, next.Tenants = maps.Clone(t.Users), maps.Clone(c.Tenants)
	if t.Users == nil {
		t.Users = map[string]*User{}
	}
	t.Users[name], next.Tenants[tenant] = u, &t
	v := &validator{cfg: &next}
	v.catalogs()
	t.check(v, yamlconf.Path{"tenants", tenant})
	v.ambiguousUsers()
	if len(v.problems) > 0 {
		return v.problems
	}
	return nil
}

// hostless returns the first of these tenants that has no host.
func (v *validator) hostless(tenants ...string) string {
	i := slices.IndexFunc(tenants, func(name string) bool { return len(v.cfg.Tenants[name].Hosts) == 0 })
	return tenants[i]
}
