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

// Auth is the service that authenticates users who are not in the configuration: an HTTP hook, a directory or an old
// FTP server. At most one can be set. The service of the server is used by all tenants without their own.
type Auth struct {
	// HTTP service that receives each login as JSON and returns the settings of the user.
	Hook Hook `yaml:"hook"`
	// LDAP directory (RFC 4511). The server checks a password by binding as the user.
	LDAP LDAP `yaml:"ldap"`
	// Old FTP server from which users are migrated. At the first login the server checks the password there, and
	// stores the user in `users_file`.
	FTP OldServer `yaml:"ftp"`
	// How long a successful login to `hook` or `ldap` is cached, up to 10m. Only the same login from the same address
	// uses the cache.
	Cache time.Duration `yaml:"cache" default:"no caching"`
	// Default settings for users of `ldap` and `ftp`. In `root` and `home`, `{user}` is replaced by the user name.
	User UserSettings `yaml:"user"`
	// Permissions of groups, by group name. A member of several groups has the permissions of all of them. Users
	// outside of these groups cannot log in.
	Groups map[string][]Permission `yaml:"groups" default:"none"`
}

// UserSettings are the default settings of users of a directory or an old FTP server.
type UserSettings struct {
	// Directory in which a session starts. To restrict a user to a directory, use `root`.
	Home string `yaml:"home" default:"/"`
	// Directory of the tenant that the user sees as `/`.
	Root string `yaml:"root" default:"/"`
	// Operations that the user may perform. `password` allows `SITE PSWD`.
	Permissions []Permission `yaml:"permissions" default:"all except password"`
	// Permissions for paths that match a pattern, instead of `permissions`.
	PathPermissions map[string][]Permission `yaml:"path_permissions" default:"none"`
	// Language of the user's sessions, unless the client selects another one with LANG.
	Language language.Tag `yaml:"language" default:"the tenant's"`
	// Maximum size of all files in `root`. The quota of the tenant applies as well.
	Quota bytesize.Size `yaml:"quota" default:"no limit"`
	// Adaptations for the user's clients. They take precedence over the settings of the network and the tenant.
	Compatibility Compatibility `yaml:"compatibility"`
}

// New returns a user with these settings.
func (s UserSettings) New() User {
	return User{
		Home: s.Home, Root: s.Root, Permissions: s.Permissions, PathPermissions: s.PathPermissions,
		Language: s.Language, Quota: s.Quota, Compatibility: s.Compatibility,
	}
}

// IsSet reports whether a service is configured.
func (a *Auth) IsSet() bool { return a.Hook != Hook{} || a.usesLDAP() || a.UsesFTP() }

// UsesFTP reports whether users are migrated from an old FTP server.
func (a *Auth) UsesFTP() bool { return a.FTP != OldServer{} }

func (a *Auth) usesLDAP() bool { return !reflect.ValueOf(a.LDAP).IsZero() }

// files returns the values that are file names.
func (a *Auth) files() []*string { return []*string{&a.Hook.CAFile, &a.LDAP.CAFile, &a.FTP.CAFile} }

// ServerAuth returns the auth section of the server, or nil if it has no service. A Loader returns the same pointer
// as long as the section and its files are unchanged.
func (c *Config) ServerAuth() *Auth {
	if !c.Auth.IsSet() {
		return nil
	}
	return cmp.Or(c.loaded.auth, &c.Auth)
}

// trust sets the CA file of the services.
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

// fillIn sets the timeouts of the services.
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

// normalize cleans the paths of directories.
func (a *Auth) normalize() {
	a.User.Home, a.User.Root = cleanDirectory(a.User.Home), cleanDirectory(a.User.Root)
}

// checkOfServer validates the section of the server, whose service must name the tenant of a user.
func (a *Auth) checkOfServer(v *validator, p yamlconf.Path) {
	a.check(v, p)
	if a.usesLDAP() && a.LDAP.Attributes[LDAPTenant] == "" {
		v.report(p.Child("ldap").Child("attributes").Child("tenant"),
			"is missing: write the attribute that names the tenant of a user, like tenant: ou")
	}
	if a.UsesFTP() {
		v.report(p.Child("ftp"), "is not allowed here, because an FTP server does not name the tenant: use auth of the tenant")
	}
}

// checkOfTenant validates the section of a tenant.
func (a *Auth) checkOfTenant(v *validator, p yamlconf.Path, storesUsers bool) {
	a.check(v, p)
	if a.UsesFTP() && !storesUsers {
		v.report(p.Child("ftp"), "requires users_file or users_store, in which the server stores the users")
	}
	if a.LDAP.Attributes[LDAPTenant] != "" {
		v.report(p.Child("ldap").Child("attributes").Child("tenant"),
			"is not allowed here, because all users of this directory belong to the tenant: use auth of the server")
	}
}

// check validates what the sections of the server and of tenants have in common.
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
			v.report(p.Child(s.key), "is not allowed together with %s: remove %[1]s or %s", before, s.key)
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
		v.report(user, "applies to ldap and ftp only: the response of a hook has the settings")
	}
	names := a.LDAP.Attributes
	for _, name := range slices.Sorted(maps.Keys(a.Groups)) {
		v.checkDuplicates(groups.Child(name), a.Groups[name])
	}
	switch {
	case len(a.Groups) == 0:
		if names[LDAPGroups] != "" {
			v.report(p.Child("ldap").Child("attributes").Child("groups"),
				"requires auth.groups with the permissions of the groups")
		}
	case names[LDAPGroups] == "":
		v.report(groups,
			"requires the attribute with the groups of a user: set it in ldap.attributes, like groups: memberOf")
	case a.User.Permissions != nil || names[LDAPPermissions] != "":
		v.report(groups, "conflicts with permissions in user or ldap.attributes: remove one of them")
	}
}
