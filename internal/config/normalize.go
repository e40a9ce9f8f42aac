package config

import (
	"maps"
	"net/netip"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// normalize gives values that may be written in several ways their one form.
func (c *Config) normalize() {
	c.Auth.normalize()
	for _, t := range c.Tenants {
		t.Auth.normalize()
		for i, host := range t.Hosts {
			t.Hosts[i] = netaddr.NormalizeHost(host)
		}
		t.Prefix, t.Inspect.Quarantine = withTrailingSlash(t.Prefix), withTrailingSlash(t.Inspect.Quarantine)
		for _, f := range t.Folders {
			f.Prefix = withTrailingSlash(f.Prefix)
		}
		for _, u := range t.Users {
			u.Home, u.Root = cleanDirectory(u.Home), cleanDirectory(u.Root)
		}
	}
	c.TLS.ACME.normalizeFolder()
	c.acmeHosts()
}

// acmeHosts gives the names to obtain certificates for their one form. By default they are those of all tenants
// without a certificate of their own.
func (c *Config) acmeHosts() {
	a := &c.TLS.ACME
	for i, host := range a.Hosts {
		a.Hosts[i] = netaddr.NormalizeHost(host)
	}
	if !a.Given() || len(a.Hosts) > 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tenants)) {
		for _, host := range c.Tenants[name].Hosts {
			if _, err := netip.ParseAddr(host); err != nil && c.Tenants[name].TLS.CertFile == "" {
				a.Hosts = append(a.Hosts, host)
			}
		}
	}
}

// withTrailingSlash is a prefix with the slash at its end.
func withTrailingSlash(prefix string) string {
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		return prefix
	}
	return prefix + "/"
}

// cleanDirectory drops what a path says twice. One that is not absolute stays as it is, to be refused.
func cleanDirectory(name string) string {
	if !path.IsAbs(name) {
		return name
	}
	return path.Clean(name)
}

// NormalizeUser is the form in which the names of users are compared: Unicode's NFC, because systems differ in how
// they send an é (RFC 8265, section 3.3 asks for it).
func NormalizeUser(name string) string { return norm.NFC.String(name) }

// FoldUser returns the form of a user name that ignores case, spaces around the name and the Unicode form, as many
// servers do. Bans, failed logins and users of directories, hooks and old servers are found by it, so that another
// spelling is not another user.
func FoldUser(name string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(strings.TrimSpace(name))))
}
