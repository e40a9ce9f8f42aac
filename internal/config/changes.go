package config

import (
	"reflect"
	"slices"
)

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
