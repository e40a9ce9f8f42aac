package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// ParseUser parses the text of a users_file and returns one of its users, or nil if it does not have the user. A text
// that is not in a file must not name other files.
func ParseUser(source string, text []byte, name string, inFile bool) (*User, error) {
	var file struct {
		Users map[string]*User `yaml:"users"`
	}
	_, problems := yamlconf.Loader{NoFiles: !inFile}.Decode(source, text, &file)
	if len(problems) > 0 {
		return nil, problems
	}
	for other, u := range file.Users {
		if NormalizeUser(other) == NormalizeUser(name) {
			u.normalize()
			return u, nil
		}
	}
	return nil, nil
}

// A UserProblem says why a user in the shared state is ignored.
type UserProblem struct {
	Tenant string `json:"tenant"`
	User   string `json:"user"`
	Reason string `json:"reason"`
}

// StoredUsers are the users in the shared state, by tenant and normalized name.
type StoredUsers map[string]map[string]*User

// MergeUsers returns a configuration in which the tenants with UsersStore also have their stored users. Users that
// would make the configuration invalid are left out; so are those that the configuration has itself, and all of other
// tenants. unknown reports that the users could not be read yet. A tenant that is equal in before is the same pointer.
func (c *Config) MergeUsers(stored StoredUsers, unknown bool, before *Config) (*Config, []UserProblem) {
	m := &userMerge{v: &validator{cfg: c}, stored: stored, names: c.loginNames()}
	if before != nil && before.loaded.bundle == c.loaded.bundle &&
		before.TLS.ClientCertificates == c.TLS.ClientCertificates {
		m.checked = before.Tenants
	}
	m.v.catalogs()
	next := *c
	next.Tenants = maps.Clone(c.Tenants)
	for _, name := range slices.Sorted(maps.Keys(c.Tenants)) {
		if t := c.Tenants[name]; t.UsersStore == StateStore {
			merged := *t
			merged.Users, merged.UsersUnknown, merged.withoutStored = m.usersOf(name, t), unknown, t
			next.Tenants[name] = &merged
		}
	}
	m.leaveOutAmbiguous(&next)
	for name, t := range next.Tenants {
		if before == nil || t.withoutStored == nil {
			continue
		}
		old := before.Tenants[name]
		if old != nil && old.withoutStored == t.withoutStored && old.UsersUnknown == unknown &&
			maps.Equal(old.Users, t.Users) {
			next.Tenants[name] = old
		}
	}
	return &next, m.problems
}

// A userMerge adds stored users to a configuration.
type userMerge struct {
	v        *validator
	stored   StoredUsers
	checked  map[string]*Tenant // result of an earlier merge in which the same users are valid; nil if there is none
	names    loginNames         // of all users without a problem
	problems []UserProblem
}

func (m *userMerge) leaveOut(tenant, user, reason string) {
	m.problems = append(m.problems, UserProblem{tenant, user, reason})
}

// usersOf returns the users of a tenant and its valid stored users.
func (m *userMerge) usersOf(tenant string, t *Tenant) map[string]*User {
	p := yamlconf.Path{"tenants", tenant}
	offered := t.checkLanguages(m.v, p)
	m.v.problems = nil // a configuration that was loaded has none
	users := make(map[string]*User, len(t.Users)+len(m.stored[tenant]))
	own := make(map[string]string, len(t.Users))
	var checked map[string]*User
	if before := m.checked[tenant]; before != nil && before.withoutStored == t {
		checked = before.Users
	}
	for name, u := range t.Users {
		users[name] = u
		own[NormalizeUser(name)] = name
	}
	for _, name := range slices.Sorted(maps.Keys(m.stored[tenant])) {
		if of, taken := own[name]; taken {
			if !reflect.DeepEqual(t.Users[of], m.stored[tenant][name]) { // or else the user is being moved
				m.leaveOut(tenant, name, "the configuration has this user too, and takes precedence: remove one of them")
			}
			continue
		}
		u := m.stored[tenant][name]
		if checked[name] != u {
			t.checkUser(m.v, p, name, u, offered)
		}
		if len(m.v.problems) > 0 {
			m.leaveOut(tenant, name, m.v.problems.Error())
			m.v.problems = nil
			continue
		}
		users[name] = u
		m.names.add(owner{tenant, name})
	}
	return users
}

// leaveOutAmbiguous removes stored users whose login name user@tenant another user has. A name that several tenants
// have is not removed, because its users can still log in with user@tenant.
func (m *userMerge) leaveOutAmbiguous(c *Config) {
	for _, tenant := range slices.Sorted(maps.Keys(m.stored)) {
		t := c.Tenants[tenant]
		if t == nil || t.withoutStored == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(t.Users)) {
			if m.stored[tenant][name] != t.Users[name] {
				continue // a user of the configuration
			}
			other, taken := m.names.qualified[name]
			if !taken {
				other, taken = m.names.plain[name+"@"+tenant]
				taken = taken && m.stored[other.tenant][other.user] != c.Tenants[other.tenant].Users[other.user]
			}
			if taken {
				delete(t.Users, name)
				m.leaveOut(tenant, name, fmt.Sprintf("it could log in with the same name as the user %s of the tenant %s: rename one "+
					"of them", other.user, other.tenant))
			}
		}
	}
}

// CheckUser returns the problems that the configuration would have if a tenant had this user, also instead of a user
// with this name.
func (c *Config) CheckUser(tenant, name string, u *User) error {
	t, next := *c.Tenants[tenant], *c
	t.Users, next.Tenants = maps.Clone(t.Users), maps.Clone(c.Tenants)
	maps.DeleteFunc(t.Users, func(other string, _ *User) bool { return NormalizeUser(other) == NormalizeUser(name) })
	next.Tenants[tenant] = &t
	v := &validator{cfg: &next}
	v.catalogs()
	p := yamlconf.Path{"tenants", tenant}
	offered := t.checkLanguages(v, p)
	v.problems = nil
	t.checkUser(v, p, name, u, offered)
	names := next.loginNames()
	v.ambiguousUser(names, owner{tenant, name})
	if other, taken := names.plain[NormalizeUser(name)+"@"+tenant]; taken {
		v.report(p.Child("users").Child(name), "%s@%s is also the name of a user of the tenant %s: rename one of them", name, tenant,
			other.tenant)
	}
	if len(v.problems) > 0 {
		return v.problems
	}
	return nil
}
