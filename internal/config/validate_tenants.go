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
	// An empty tenants_dir was already reported.
	if len(v.cfg.Tenants) == 0 && len(v.cfg.TenantsDir) == 0 && !v.cfg.Kubernetes.IsSet() {
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
	names := v.cfg.loginNames()
	for _, tenant := range slices.Sorted(maps.Keys(v.cfg.Tenants)) {
		for _, user := range slices.Sorted(maps.Keys(v.cfg.Tenants[tenant].Users)) {
			v.ambiguousUser(names, owner{tenant, user})
		}
	}
}

// An owner is a user of a tenant.
type owner struct{ tenant, user string }

// loginNames are the names with which users can log in without a host.
type loginNames struct {
	plain     map[string]owner // the first user with this name
	qualified map[string]owner // user@tenant
}

// loginNames returns the names of all users, except for users of custom resources, which give way to others.
func (c *Config) loginNames() loginNames {
	names := loginNames{map[string]owner{}, map[string]owner{}}
	for _, tenant := range slices.Sorted(maps.Keys(c.Tenants)) {
		if c.Tenants[tenant].Namespace != "" {
			continue
		}
		for _, user := range slices.Sorted(maps.Keys(c.Tenants[tenant].Users)) {
			names.add(owner{tenant, user})
		}
	}
	return names
}

func (n loginNames) add(o owner) {
	name := NormalizeUser(o.user)
	n.qualified[name+"@"+o.tenant] = o
	if _, taken := n.plain[name]; !taken {
		n.plain[name] = o
	}
}

// ambiguousUser reports a user whose login name is ambiguous. names may contain the user.
func (v *validator) ambiguousUser(names loginNames, o owner) {
	p, name := yamlconf.Path{"tenants", o.tenant, "users", o.user}, NormalizeUser(o.user)
	if other, taken := names.qualified[name]; taken {
		v.report(p, "%s is also the login name of the user %s of the tenant %s: rename one of them", o.user, other.user,
			other.tenant)
	}
	switch first, taken := names.plain[name]; {
	case !taken, first == o:
	case first.tenant == o.tenant:
		v.report(p, "%s and %s differ only in Unicode normalization: remove one", o.user, first.user)
	case len(v.cfg.Tenants[o.tenant].Hosts) == 0 || len(v.cfg.Tenants[first.tenant].Hosts) == 0:
		v.report(p, "the tenant %s has a user with this name too, and %s has no host to distinguish them: give both "+
			"tenants hosts, or rename one user", first.tenant, v.hostless(first.tenant, o.tenant))
	}
}

// hostless returns the first of these tenants that has no host.
func (v *validator) hostless(tenants ...string) string {
	i := slices.IndexFunc(tenants, func(name string) bool { return len(v.cfg.Tenants[name].Hosts) == 0 })
	return tenants[i]
}
