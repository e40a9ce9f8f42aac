package config

import (
	"maps"
	"reflect"
	"slices"
)

// TenantChanges are the differences between the tenants of two configurations, as sorted lists of names.
type TenantChanges struct{ Added, Changed, Removed []string }

// IsEmpty reports whether nothing differs.
func (c TenantChanges) IsEmpty() bool { return len(c.Added)+len(c.Changed)+len(c.Removed) == 0 }

// TenantChanges returns the tenants that were added, changed or removed since another configuration. A tenant counts as
// changed if its own settings differ; its users are ignored.
func (c *Config) TenantChanges(before *Config) TenantChanges {
	var changes TenantChanges
	for _, name := range slices.Sorted(maps.Keys(c.Tenants)) {
		switch old := before.Tenants[name]; {
		case old == nil:
			changes.Added = append(changes.Added, name)
		case old != c.Tenants[name] && !reflect.DeepEqual(old.withoutUsers(), c.Tenants[name].withoutUsers()):
			changes.Changed = append(changes.Changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Tenants)) {
		if c.Tenants[name] == nil {
			changes.Removed = append(changes.Removed, name)
		}
	}
	return changes
}

// withoutUsers returns a copy of the tenant without its users.
func (t *Tenant) withoutUsers() Tenant {
	own := *t
	own.Users, own.UsersUnknown, own.withoutStored = nil, false, nil
	return own
}

// UserChanges are the differences between the users of two configurations, as sorted lists of USER@TENANT.
type UserChanges struct{ Added, Changed, Removed []string }

// IsEmpty reports whether there are no differences.
func (c UserChanges) IsEmpty() bool { return len(c.Added)+len(c.Changed)+len(c.Removed) == 0 }

// UserChanges returns the users that were added, changed or removed since another configuration. A user counts as
// changed if its own settings, such as the password, differ; settings of the tenant are ignored.
func (c *Config) UserChanges(before *Config) UserChanges {
	var changes UserChanges
	for name, t := range c.Tenants {
		old := before.Tenants[name]
		if old == t {
			continue
		}
		for user, settings := range t.Users {
			was := old.user(user)
			switch {
			case was == nil:
				changes.Added = append(changes.Added, user+"@"+name)
			case !reflect.DeepEqual(was, settings):
				changes.Changed = append(changes.Changed, user+"@"+name)
			}
		}
	}
	for name, old := range before.Tenants {
		for user := range old.Users {
			if c.Tenants[name].user(user) == nil {
				changes.Removed = append(changes.Removed, user+"@"+name)
			}
		}
	}
	slices.Sort(changes.Added)
	slices.Sort(changes.Changed)
	slices.Sort(changes.Removed)
	return changes
}

// user returns a user of a tenant, or nil. t may be nil.
func (t *Tenant) user(name string) *User {
	if t == nil {
		return nil
	}
	return t.Users[name]
}
