package config

import (
	"reflect"
	"slices"
)

// UserChanges are the users in which two configurations differ, as USER@TENANT, in order.
type UserChanges struct{ Added, Changed, Removed []string }

// UserChanges tells which users have come, changed or gone since another configuration. A user has changed whose own
// settings have, such as the password, and not those of the tenant.
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

// user is a user of a tenant, nil without one. A nil tenant has none.
func (t *Tenant) user(name string) *User {
	if t == nil {
		return nil
	}
	return t.Users[name]
}
