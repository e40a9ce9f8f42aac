package config

import (
	"net/netip"
	"path"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// normalize gives values that may be written in several ways their one form. dir is what the paths of files are relative to.
func (c *Config) normalize(dir string) {
	files := []*string{&c.TLS.CertFile, &c.TLS.KeyFile, &c.LocalesDir}
	for _, t := range c.Tenants {
		files = append(files, &t.TLS.CertFile, &t.TLS.KeyFile)
		for i, host := range t.Hosts {
			t.Hosts[i] = NormalizeHost(host)
		}
		t.Prefix = slashed(t.Prefix)
		for _, f := range t.Folders {
			f.Prefix = slashed(f.Prefix)
		}
		for _, u := range t.Users {
			u.Home, u.Root = cleanDirectory(u.Home), cleanDirectory(u.Root)
		}
	}
	for _, name := range files {
		*name = yamlconf.ResolvePath(dir, *name)
	}
}

// slashed is a prefix with the slash at its end.
func slashed(prefix string) string {
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

// NormalizeHost is the form in which hosts are compared: an IP address in its shortest form, a name in lower case and A-labels (RFC
// 5890) without a dot at the end. A name that no host can have is returned as it is.
func NormalizeHost(name string) string {
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.String()
	}
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
	if err != nil {
		return name
	}
	return ascii
}

// NormalizeUser is the form in which the names of users are compared: Unicode's NFC, because systems differ in how they send an é
// (RFC 8265, section 3.3 asks for it).
func NormalizeUser(name string) string { return norm.NFC.String(name) }
