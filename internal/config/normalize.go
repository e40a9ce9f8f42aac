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

// normalize converts values that can be written in several ways to one form.
func (c *Config) normalize() {
	c.Auth.normalize()
	for _, t := range c.Tenants {
		t.normalize()
		for _, u := range t.Users {
			u.normalize()
		}
	}
	c.Kubernetes.normalize()
	c.State.normalize()
	if !c.State.IsSet() {
		c.TLS.ACME.normalizeFolder()
	}
	c.acmeHosts()
}

func (t *Tenant) normalize() {
	t.Auth.normalize()
	for i, host := range t.Hosts {
		t.Hosts[i] = netaddr.NormalizeHost(host)
	}
	t.Prefix, t.Inspect.Quarantine = withTrailingSlash(t.Prefix), withTrailingSlash(t.Inspect.Quarantine)
	for _, f := range t.Folders {
		f.Prefix = withTrailingSlash(f.Prefix)
	}
}

func (u *User) normalize() { u.Home, u.Root = cleanDirectory(u.Home), cleanDirectory(u.Root) }

// acmeHosts normalizes the host names of ACME. The default is the hosts of all tenants without a certificate of their
// own. Hosts of custom resources are not among them, because a namespace could use up the rate limits of the
// certificate authority.
func (c *Config) acmeHosts() {
	a := &c.TLS.ACME
	for i, host := range a.Hosts {
		a.Hosts[i] = netaddr.NormalizeHost(host)
	}
	if !a.IsSet() || len(a.Hosts) > 0 {
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

// withTrailingSlash appends a slash to a nonempty prefix unless it has one.
func withTrailingSlash(prefix string) string {
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		return prefix
	}
	return prefix + "/"
}

// cleanDirectory cleans an absolute path. Relative paths are unchanged; validation rejects them.
func cleanDirectory(name string) string {
	if !path.IsAbs(name) {
		return name
	}
	return path.Clean(name)
}

// NormalizeUser returns the form in which user names are compared: NFC, as RFC 8265, section 3.3, requires, because
// systems encode accented letters differently.
func NormalizeUser(name string) string { return norm.NFC.String(name) }

// FoldUser returns a user name without differences in case, surrounding spaces and Unicode normalization, which many
// servers ignore. Bans, failed logins and users of directories, hooks and old servers are keyed by it, so that
// another spelling is not another user.
func FoldUser(name string) string {
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(strings.TrimSpace(name))))
}
