package config

import (
	"maps"
	"reflect"
	"slices"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Auth is the service that decides on logins of users whom the configuration does not have. There is one at most.
type Auth struct {
	AuthServices
	// Settings of each user of `ldap`. `{user}` in `root` and `home` stands for the name.
	User User `yaml:"user" since:"0.2.0"`
	// What members of a group may do, by the name of the group. Those of several groups add up. A user of none may
	// not log in.
	Groups map[string][]Permission `yaml:"groups" default:"none" since:"0.2.0"`
}

// auth checks the service of a tenant, and the settings of its users.
func (v *validator) auth(p yamlconf.Path, a *Auth) {
	a.Check(p, v.cfg.Limits.LoginTimeout, v.report)
	user, groups := p.Child("user"), p.Child("groups")
	v.userSettings(user, &a.User)
	v.noLocalSettings(user, &a.User)
	if reflect.ValueOf(a.LDAP).IsZero() && !reflect.ValueOf(a.User).IsZero() {
		v.report(user, "is for users of ldap: the answer of a hook has the settings")
	}
	names := &a.LDAP.Attributes
	for _, name := range slices.Sorted(maps.Keys(a.Groups)) {
		v.checkDuplicates(groups.Child(name), a.Groups[name])
	}
	switch {
	case len(a.Groups) == 0:
		if names.Groups != "" {
			v.report(
				p.Child("ldap").Child("attributes").Child("groups"),
				"needs the permissions of the groups: write auth.groups")
		}
	case names.Groups == "":
		v.report(
			groups,
			"need the name of what has the groups of a user: write it in ldap.attributes, like groups: memberOf")
	case a.User.Permissions != nil || names.Permissions != "":
		v.report(groups, "already say what users may do: remove the permissions of user and of ldap.attributes")
	}
}

// noLocalSettings reports settings that only users of the configuration have.
func (v *validator) noLocalSettings(p yamlconf.Path, u *User) {
	if !u.PasswordHash.Empty() {
		v.report(p.Child("password_hash"), "has no place here: the service compares the password")
	}
	if u.Overwrite != "" {
		v.report(
			p.Child(
				"overwrite"), "has no place here: write it in the tenant, because the server checks at its start "+
				"what the bucket can do")
	}
}
