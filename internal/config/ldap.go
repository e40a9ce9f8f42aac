package config

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// UserPlaceholder stands for the name of the user in a distinguished name and in directories.
const UserPlaceholder = "{user}"

// LDAP is a directory (RFC 4511) that compares the password: the server binds as the user.
type LDAP struct {
	// URLs of the directory, `ldaps://` or `ldap://`. If one does not answer, the next is asked.
	URLs []string `yaml:"urls" default:"none"`
	// Encrypt connections to `ldap://` by StartTLS. With `false` passwords cross the network in the clear.
	StartTLS *bool `yaml:"start_tls" default:"true"`
	// CAFile has authorities to trust in addition to those of the system. It is no key: it is that of the tenant or
	// server.
	CAFile string
	// Distinguished name of each user, like `uid={user},ou=people,dc=example,dc=com`. Without it the server searches
	// for users.
	UserDN string `yaml:"user_dn" default:"none"`
	// Entry below which the server searches for users, on all levels.
	BaseDN string `yaml:"base_dn" default:"none"`
	// Account that searches.
	BindDN string `yaml:"bind_dn" default:"anonymous"`
	// Password of this account.
	BindPassword value.Secret `yaml:"bind_password" default:"required with bind_dn"`
	// Condition that the entry of a user must meet (RFC 4515), like `(memberOf=cn=ftp,ou=groups,dc=example,dc=com)`.
	Filter string `yaml:"filter" default:"none"`
	// Attributes, by what they say of the user: `name` (default: that of `user_dn`, else `uid`), `root`, `home`, `quota`,
	// `language`, `permissions`, `groups`, `compatibility` (one `charset=shift_jis` in each value), like `groups: memberOf`.
	// `tenant` is required in `auth` of the server.
	Attributes Attributes `yaml:"attributes" default:"none"`
	// Timeout is how long the servers have for a login, all together: less than a session has for it. It is no key:
	// Load sets it.
	Timeout time.Duration
}

// Attributes are the names of the attributes of an entry in a directory, by what they say of the user.
type Attributes map[LDAPSetting]string

// An LDAPSetting is what an attribute of an entry says of the user.
type LDAPSetting string

// The settings.
const (
	LDAPName LDAPSetting = "name" // the name that the client writes
	LDAPRoot LDAPSetting = "root" // the directory that the user sees as /
	LDAPHome LDAPSetting = "home" // the directory in which a login starts

	LDAPQuota       LDAPSetting = "quota"       // the size of the quota
	LDAPLanguage    LDAPSetting = "language"    // the language, or several
	LDAPPermissions LDAPSetting = "permissions" // one in each value
	LDAPGroups      LDAPSetting = "groups"      // for auth.groups
	LDAPTenant      LDAPSetting = "tenant"      // the name of the tenant, for auth of the server

	LDAPCompatibility LDAPSetting = "compatibility" // a key of Compatibility with its value in each value
)

// Values implements [yamlconf.Enum].
func (LDAPSetting) Values() []string {
	return yamlconf.EnumValues(
		LDAPName, LDAPRoot, LDAPHome, LDAPQuota, LDAPLanguage, LDAPPermissions, LDAPGroups, LDAPTenant,
		LDAPCompatibility)
}

// UsesStartTLS reports whether connections to ldap:// are encrypted.
func (l *LDAP) UsesStartTLS() bool { return l.StartTLS == nil || *l.StartTLS }

// UserAttributeOf is the attribute that has the name of the user.
func (l *LDAP) UserAttributeOf() string {
	if l.Attributes[LDAPName] == "" && l.UserDN != "" {
		attribute, _, _ := strings.Cut(l.UserDN, "=")
		return strings.TrimSpace(attribute)
	}
	return cmp.Or(l.Attributes[LDAPName], "uid")
}

// UserDNOf is the distinguished name of a user, by the pattern.
func (l *LDAP) UserDNOf(user string) string {
	return strings.ReplaceAll(l.UserDN, UserPlaceholder, ldap.EscapeDN(user))
}

func (l *LDAP) check(v *validator, p yamlconf.Path) {
	if len(l.URLs) == 0 {
		v.report(p.Child("urls"), "is missing: write the servers of the directory, like [ldaps://ldap.example.com]")
	}
	for i, text := range l.URLs {
		if !isURL(text, "ldap", "ldaps") ||
			strings.ContainsAny(strings.TrimSuffix(text[strings.Index(text, "//")+2:], "/"), "/?#") {
			v.report(
				p.Child("urls").Child(strconv.Itoa(i)),
				"is no URL of a directory: write it like ldaps://ldap.example.com, without a path")
		}
	}
	l.checkNames(v, p)
	if l.Filter != "" {
		if _, err := ldap.CompileFilter(l.Filter); err != nil {
			v.report(p.Child("filter"), "is not a filter: write it like (objectClass=person), see RFC 4515")
		}
	}
	if strings.Contains(l.Filter, UserPlaceholder) {
		v.report(p.Child("filter"), "needs no {user}: the server adds the condition on the name itself")
	}
	attribute := regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*|[0-9]+(\.[0-9]+)+)$`) // RFC 4512 1.4
	for setting, name := range l.Attributes {
		if name != "" && !attribute.MatchString(name) {
			v.report(p.Child("attributes").Child(string(setting)), "%q is not an attribute: write it like uid", name)
		}
	}
}

// checkNames checks the distinguished names, and that there are those of one way to find a user.
func (l *LDAP) checkNames(v *validator, p yamlconf.Path) {
	const like = "write it like uid={user},ou=people,dc=example,dc=com"
	switch {
	case l.UserDN == "" && l.BaseDN == "":
		v.report(p.Child("base_dn"),
			"is missing: write where users are, like ou=people,dc=example,dc=com, or the "+
				"pattern user_dn")
	case l.UserDN != "" && (l.BaseDN != "" || l.BindDN != ""):
		v.report(p.Child("user_dn"), "needs no search: remove base_dn and bind_dn, or user_dn")
	case l.UserDN != "":
		dn, err := ldap.ParseDN(l.UserDN)
		if err != nil || len(dn.RDNs[0].Attributes) != 1 || dn.RDNs[0].Attributes[0].Value != UserPlaceholder ||
			strings.Count(l.UserDN, UserPlaceholder) != 1 {
			v.report(p.Child("user_dn"), "is not a distinguished name that begins with an attribute for {user}: %s", like)
		}
	}
	for key, name := range map[string]string{"base_dn": l.BaseDN, "bind_dn": l.BindDN} {
		if _, err := ldap.ParseDN(name); err != nil {
			v.report(p.Child(key), "is not a distinguished name: write it like ou=people,dc=example,dc=com, see RFC 4514")
		}
	}
	switch {
	case l.BindDN != "" && l.BindPassword.Empty(): // RFC 4513 5.1.2
		v.report(p.Child("bind_password"), "is missing: without a password the bind would be anonymous")
	case l.BindDN == "" && !l.BindPassword.Empty():
		v.report(p.Child("bind_dn"), "is missing: write whose password bind_password is")
	}
}
