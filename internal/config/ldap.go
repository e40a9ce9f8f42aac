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

// UserPlaceholder is replaced by the user name in DNs and directories.
const UserPlaceholder = "{user}"

// LDAP is a directory (RFC 4511). The server checks a password by binding as the user.
type LDAP struct {
	// URLs of the directory servers, `ldaps://` or `ldap://`, which are tried in order.
	URLs []string `yaml:"urls" default:"none"`
	// Use StartTLS for `ldap://`. With `false`, passwords are sent in the clear.
	StartTLS *bool `yaml:"start_tls" default:"true"`
	// CAFile has additional CA certificates to trust. It is not a key; it is set from ca_file of the tenant or the
	// server.
	CAFile string
	// DN of users, such as `uid={user},ou=people,dc=example,dc=com`. If it is not set, the server searches for users.
	UserDN string `yaml:"user_dn" default:"none"`
	// Base DN of the search for users. All levels below it are searched.
	BaseDN string `yaml:"base_dn" default:"none"`
	// DN of the account that searches for users.
	BindDN string `yaml:"bind_dn" default:"anonymous"`
	// Password of `bind_dn`.
	BindPassword value.Secret `yaml:"bind_password" default:"required with bind_dn"`
	// Filter that the entry of a user must match (RFC 4515), such as `(memberOf=cn=ftp,ou=groups,dc=example,dc=com)`.
	Filter string `yaml:"filter" default:"none"`
	// Names of attributes, by the setting that they hold: `name` (default: the attribute in `user_dn`, or `uid`),
	// `root`, `home`, `quota`, `language`, `permissions`, `groups`, `compatibility` (values such as
	// `charset=shift_jis`). For example, `groups: memberOf`. `tenant` is required in `auth` of the server.
	Attributes Attributes `yaml:"attributes" default:"none"`
	// Timeout limits a login, including all servers that are tried. It is not a key; Load sets it to less than the
	// login timeout of a session.
	Timeout time.Duration
}

// Attributes are the names of LDAP attributes, by the setting that they hold.
type Attributes map[LDAPSetting]string

// An LDAPSetting is a setting that an LDAP attribute can hold.
type LDAPSetting string

// The settings.
const (
	LDAPName LDAPSetting = "name" // the user name
	LDAPRoot LDAPSetting = "root" // the directory that the user sees as /
	LDAPHome LDAPSetting = "home" // the directory in which a session starts

	LDAPQuota       LDAPSetting = "quota"       // the quota of the user
	LDAPLanguage    LDAPSetting = "language"    // one or several languages
	LDAPPermissions LDAPSetting = "permissions" // one permission per value
	LDAPGroups      LDAPSetting = "groups"      // the groups of the user, for auth.groups
	LDAPTenant      LDAPSetting = "tenant"      // the tenant of the user, for auth of the server

	LDAPCompatibility LDAPSetting = "compatibility" // one KEY=VALUE of Compatibility per value
)

// Values implements [yamlconf.Enum].
func (LDAPSetting) Values() []string {
	return yamlconf.EnumValues(
		LDAPName, LDAPRoot, LDAPHome, LDAPQuota, LDAPLanguage, LDAPPermissions, LDAPGroups, LDAPTenant,
		LDAPCompatibility)
}

// UsesStartTLS reports whether StartTLS is used for ldap:// URLs.
func (l *LDAP) UsesStartTLS() bool { return l.StartTLS == nil || *l.StartTLS }

// UserAttributeOf returns the attribute that holds the user name.
func (l *LDAP) UserAttributeOf() string {
	if l.Attributes[LDAPName] == "" && l.UserDN != "" {
		attribute, _, _ := strings.Cut(l.UserDN, "=")
		return strings.TrimSpace(attribute)
	}
	return cmp.Or(l.Attributes[LDAPName], "uid")
}

// UserDNOf returns the DN of a user according to user_dn.
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
				"is not an LDAP URL: write it like ldaps://ldap.example.com, without a path")
		}
	}
	l.checkNames(v, p)
	if l.Filter != "" {
		if _, err := ldap.CompileFilter(l.Filter); err != nil {
			v.report(p.Child("filter"), "is not a filter: write it like (objectClass=person), see RFC 4515")
		}
	}
	if strings.Contains(l.Filter, UserPlaceholder) {
		v.report(p.Child("filter"), "must not contain {user}: the server adds the condition on the name")
	}
	attribute := regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*|[0-9]+(\.[0-9]+)+)$`) // RFC 4512 1.4
	for setting, name := range l.Attributes {
		if name != "" && !attribute.MatchString(name) {
			v.report(p.Child("attributes").Child(string(setting)), "%q is not an attribute: write it like uid", name)
		}
	}
}

// checkNames validates the DNs, and that they configure either a pattern or a search.
func (l *LDAP) checkNames(v *validator, p yamlconf.Path) {
	const like = "write it like uid={user},ou=people,dc=example,dc=com"
	switch {
	case l.UserDN == "" && l.BaseDN == "":
		v.report(p.Child("base_dn"),
			"is missing: write the base DN of users, like ou=people,dc=example,dc=com, or the "+
				"pattern user_dn")
	case l.UserDN != "" && (l.BaseDN != "" || l.BindDN != ""):
		v.report(p.Child("user_dn"), "conflicts with base_dn and bind_dn: remove them, or user_dn")
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
		v.report(p.Child("bind_dn"), "is missing: write the DN that bind_password belongs to")
	}
}
