package config

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// OIDC is an OpenID Connect provider at which administrators log in. The server checks their groups every five minutes.
type OIDC struct {
	// Issuer of the provider, such as `https://login.example.com/realms/staff`. The server reads its configuration from
	// `/.well-known/openid-configuration` below it.
	Issuer string `yaml:"issuer" default:"required"`
	// ID of this client at the provider.
	ClientID string `yaml:"client_id" default:"required"`
	// Secret of this client at the provider.
	ClientSecret value.Secret `yaml:"client_secret" default:"none, for a public client"`
	// Address of the page in browsers, such as `https://ftp.example.com:9122`. Allow the redirect URI
	// `URL/login/oidc/callback` at the provider.
	URL string `yaml:"url" default:"required with tls; else http:// and the host in the browser, which is localhost"`
	// Scopes to request. They must contain `openid`.
	Scopes []string `yaml:"scopes" default:"openid, profile, email; groups and offline_access if the provider has them"`
	// Claim with the name of an administrator. The name in the audit log is `NAME (SUB)`, because only the claim `sub`
	// is unique. An `email` is used only if `email_verified` is true.
	NameClaim string `yaml:"name_claim" default:"preferred_username"`
	// Claim with the groups of an administrator, in the ID token or at the userinfo endpoint.
	GroupsClaim string `yaml:"groups_claim" default:"groups"`
	// Groups that have a role, by role. The highest role counts. Other people cannot log in.
	Roles map[AdminRole][]string `yaml:"roles" default:"required"`
	// CAFile has additional CA certificates to trust. It is not a key; it is set from ca_file of the server.
	CAFile string
}

// An AdminRole says what an administrator may do.
type AdminRole string

// The roles, each of which includes the rights of the previous ones.
const (
	RoleViewer        AdminRole = "viewer"        // see everything except secrets
	RoleOperator      AdminRole = "operator"      // disconnect, ban and debug clients, delete uploads
	RoleAdministrator AdminRole = "administrator" // manage users
)

// AdminRoles returns all roles, the lowest first.
func AdminRoles() []AdminRole { return []AdminRole{RoleViewer, RoleOperator, RoleAdministrator} }

// Values implements [yamlconf.Enum].
func (AdminRole) Values() []string { return yamlconf.EnumValues(AdminRoles()...) }

// IsSet reports whether a provider is configured.
func (o *OIDC) IsSet() bool { return !reflect.ValueOf(*o).IsZero() }

// trust sets the CA file of the provider.
func (o *OIDC) trust(file string) {
	if o.IsSet() {
		o.CAFile = file
	}
}

// RoleOf returns the highest role of the groups, or "" if there is none.
func (o *OIDC) RoleOf(groups []string) AdminRole {
	for _, role := range slices.Backward(AdminRoles()) {
		if slices.ContainsFunc(o.Roles[role], func(group string) bool { return slices.Contains(groups, group) }) {
			return role
		}
	}
	return ""
}

// check validates the section at p.
func (o *OIDC) check(v *validator, p yamlconf.Path, hasTLS bool) {
	switch {
	case o.Issuer == "":
		v.report(p.Child("issuer"), "is missing: write the issuer of the provider, like https://login.example.com/realms/staff")
	case !IsSecureURL(o.Issuer) || strings.ContainsAny(o.Issuer, "?#"):
		v.report(p.Child("issuer"), "%q is not an issuer: write it like https://login.example.com/realms/staff", o.Issuer)
	case strings.HasSuffix(o.Issuer, "/.well-known/openid-configuration"):
		v.report(p.Child("issuer"), "is the URL of the provider's configuration: remove /.well-known/openid-configuration")
	}
	if o.ClientID == "" {
		v.report(p.Child("client_id"), "is missing: register this client at the provider, and write its ID")
	}
	const like = "write the address of the page in browsers, like https://ftp.example.com:9122"
	switch u, err := url.Parse(o.URL); {
	case o.URL == "" && hasTLS:
		v.report(p.Child("url"), "is missing: %s", like)
	case o.URL != "" && (err != nil || !IsSecureURL(o.URL) || strings.Trim(u.Path, "/") != "" ||
		strings.ContainsAny(o.URL, "?#")):
		v.report(p.Child("url"), "%q is not the address of the page: %s", o.URL, like)
	}
	if o.Scopes != nil && !slices.Contains(o.Scopes, "openid") {
		v.report(p.Child("scopes"), "must contain openid")
	}
	if len(o.Roles) == 0 {
		v.report(p.Child("roles"), "is missing: nobody could log in; write groups, like {administrator: [ftp-admins]}")
	}
	for _, role := range slices.Sorted(maps.Keys(o.Roles)) {
		if groups := o.Roles[role]; len(groups) == 0 || slices.Contains(groups, "") {
			v.report(p.Child("roles").Child(string(role)), "has no group, or one without a name: write groups, or remove the role")
		}
	}
}

// IsSecureURL reports whether text is an https URL, or an http URL of a loopback address.
func IsSecureURL(text string) bool {
	if isURL(text, "https") {
		return true
	}
	u, err := url.Parse(text)
	return err == nil && isURL(text, "http") && IsLoopback(u.Host)
}
