package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Auth is the directory, HTTP hook or old FTP server that decides on logins of users who are not in the configuration.
// There is one at most. That of the server serves all tenants without one of their own.
type Auth struct {
	// HTTP service that gets each login in JSON and answers with the settings of the user.
	Hook Hook `yaml:"hook"`
	// Directory (LDAP, RFC 4511) that compares the password: the server binds as the user.
	LDAP LDAP `yaml:"ldap"`
	// Old FTP server whose users keep their passwords: who logs in there once is stored in `users_file`.
	FTP OldServer `yaml:"ftp"`
	// How long the same login from the same address needs no further question to `hook` or `ldap`, up to 10m.
	Cache time.Duration `yaml:"cache" default:"not at all"`
	// Settings of each user of `ldap` and `ftp`. `{user}` in `root` and `home` stands for the name.
	User UserSettings `yaml:"user"`
	// Permissions of a group's members, by its name. Those of several groups add up; a user of none may not log in.
	Groups map[string][]Permission `yaml:"groups" default:"none"`
}

// UserSettings are what all users of a directory or old server have, unless the entries of a directory say otherwise.
type UserSettings struct {
	// Directory in which a login starts. It confines no user: use `root`.
	Home string `yaml:"home" default:"/"`
	// Directory of the tenant that the user sees as `/`.
	Root string `yaml:"root" default:"/"`
	// What the user may do.
	Permissions []Permission `yaml:"permissions" default:"all"`
	// What the user may do with some pathnames, by pattern, in place of `permissions`.
	PathPermissions map[string][]Permission `yaml:"path_permissions" default:"none"`
	// Language of the user's sessions until LANG chooses another one.
	Language language.Tag `yaml:"language" default:"the tenant's"`
	// Bytes that may be stored below `root`, in addition to the quota of the tenant.
	Quota bytesize.Size `yaml:"quota" default:"no limit"`
	// How the user's clients differ from the standards. It wins over the network and the tenant.
	Compatibility Compatibility `yaml:"compatibility"`
}

// New is a user with the settings.
func (s UserSettings) New() User {
	return User{
		Home: s.Home, Root: s.Root, Permissions: s.Permissions, PathPermissions: s.PathPermissions,
		Language: s.Language, Quota: s.Quota, Compatibility: s.Compatibility,
	}
}

// Given reports whether there is a service.
func (a *Auth) Given() bool { return a.Hook != Hook{} || a.usesLDAP() || a.UsesFTP() }

// UsesFTP reports whether users move from an old FTP server.
func (a *Auth) UsesFTP() bool { return a.FTP != OldServer{} }

func (a *Auth) usesLDAP() bool { return !reflect.ValueOf(a.LDAP).IsZero() }

// files are the values that name files.
func (a *Auth) files() []*string { return []*string{&a.Hook.CAFile, &a.LDAP.CAFile, &a.FTP.CAFile} }

// ServerAuth is Auth, nil where it has no service. Of a Loader it is the same as before while neither the section nor
// its files change.
func (c *Config) ServerAuth() *Auth {
	if !c.Auth.Given() {
		return nil
	}
	return cmp.Or(c.loaded.auth, &c.Auth)
}

// trust gives the services authorities to trust.
func (a *Auth) trust(file string) {
	if a.Hook != (Hook{}) {
		a.Hook.CAFile = file
	}
	if a.usesLDAP() {
		a.LDAP.CAFile = file
	}
	if a.UsesFTP() {
		a.FTP.CAFile = file
	}
}

// fillIn gives the services the time for a login that the file does not.
func (a *Auth) fillIn(loginTimeout time.Duration) {
	inTime := min(defaultAuthTimeout, loginTimeout/2)
	if a.Hook != (Hook{}) {
		a.Hook.Timeout = cmp.Or(a.Hook.Timeout, inTime)
	}
	if a.usesLDAP() {
		a.LDAP.Timeout = cmp.Or(a.LDAP.Timeout, inTime)
	}
	if a.UsesFTP() {
		a.FTP.Timeout = cmp.Or(a.FTP.Timeout, min(maxOldServerTimeout, loginTimeout/2))
	}
}

// normalize gives directories their one form.
func (a *Auth) normalize() {
	a.User.Home, a.User.Root = cleanDirectory(a.User.Home), cleanDirectory(a.User.Root)
}

// checkOfServer reports what is wrong with the section of the server, whose answers name the tenant.
func (a *Auth) checkOfServer(v *validator, p yamlconf.Path) {
	a.check(v, p)
	if a.usesLDAP() && a.LDAP.Attributes[LDAPTenant] == "" {
		v.report(p.Child("ldap").Child("attributes").Child("tenant"),
			"is missing: write the attribute that names the tenant of a user, like tenant: ou")
	}
	if a.UsesFTP() {
		v.report(p.Child("ftp"), "has no place here: an FTP server names no tenant, write it in auth of the tenant")
	}
}

// checkOfTenant reports what is wrong with the section of a tenant.
func (a *Auth) checkOfTenant(v *validator, p yamlconf.Path, usersFile string) {
	a.check(v, p)
	if a.UsesFTP() && usersFile == "" {
		v.report(p.Child("ftp"), "needs users_file of the tenant: the server stores there who has logged in")
	}
	if a.LDAP.Attributes[LDAPTenant] != "" {
		v.report(p.Child("ldap").Child("attributes").Child("tenant"),
			"has no place here: the directory of a tenant has users of this tenant only, auth of the server has those of all")
	}
}

// check reports what is wrong with the section that p leads to, wherever it is.
func (a *Auth) check(v *validator, p yamlconf.Path) {
	before := ""
	for _, s := range []struct {
		key   string
		given bool
		check func(*validator, yamlconf.Path)
	}{
		{"hook", a.Hook != Hook{}, a.Hook.check}, {"ldap", a.usesLDAP(), a.LDAP.check}, {"ftp", a.UsesFTP(), a.FTP.check},
	} {
		if !s.given {
			continue
		}
		s.check(v, p.Child(s.key))
		if before != "" {
			v.report(p.Child(s.key), "is one service too many: a login asks one, keep %s or %s", before, s.key)
		}
		before = s.key
	}
	if a.Cache < 0 || a.Cache > maxAuthCache {
		v.report(p.Child("cache"), "%s is not between 0s and %s", a.Cache, maxAuthCache)
	}
	user, groups := p.Child("user"), p.Child("groups")
	settings := a.User.New()
	settings.checkSettings(v, user)
	if !a.usesLDAP() && !a.UsesFTP() && !reflect.ValueOf(a.User).IsZero() {
		v.report(user, "is for users of ldap and ftp: the answer of a hook has the settings")
	}
	names := a.LDAP.Attributes
	for _, name := range slices.Sorted(maps.Keys(a.Groups)) {
		v.checkDuplicates(groups.Child(name), a.Groups[name])
	}
	switch {
	case len(a.Groups) == 0:
		if names[LDAPGroups] != "" {
			v.report(p.Child("ldap").Child("attributes").Child("groups"),
				"needs the permissions of the groups: write auth.groups")
		}
	case names[LDAPGroups] == "":
		v.report(groups,
			"need the name of what has the groups of a user: write it in ldap.attributes, like groups: memberOf")
	case a.User.Permissions != nil || names[LDAPPermissions] != "":
		v.report(groups, "already say what users may do: remove the permissions of user and of ldap.attributes")
	}
}
