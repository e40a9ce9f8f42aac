package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"unicode"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Admin is the HTTP interface for administrators, who see all sessions and file names, and can end sessions and
// uploads.
type Admin struct {
	// Address of the admin page and API, host:port. An address other than loopback requires `admin.tls`.
	Listen string `yaml:"listen" default:"none"`
	// Administrators, one `NAME:HASH` per line. `babelftp hash-password` prints the hash.
	Users value.Secret `yaml:"users" default:"none"`
	// Roles of administrators in `users` or with a client certificate, by name. The others have the role `administrator`.
	Roles map[string]AdminRole `yaml:"roles" default:"none"`
	// OpenID Connect provider at which administrators log in.
	OIDC OIDC `yaml:"oidc"`
	// TLS for connections of administrators.
	TLS AdminTLS `yaml:"tls"`
}

// AdminTLS is the TLS configuration for connections of administrators.
type AdminTLS struct {
	// PEM file with the certificate and its chain.
	CertFile string `yaml:"cert_file" path:"true" default:"none"`
	// PEM file with the private key.
	KeyFile string `yaml:"key_file" path:"true" default:"none"`
	// PEM file with the CA certificates for client certificates of administrators. The common name of the certificate
	// is the name of the administrator. Use a CA that issues certificates to administrators only.
	ClientCAFile string `yaml:"client_ca_file" path:"true" default:"none"`
}

// errAdministrator reports an invalid line, which is not shown because it may contain a password.
var errAdministrator = errors.New("is not NAME:HASH: create the hash with `babelftp hash-password`")

// Administrators parses `admin.users` and returns the password hashes by name. Blank lines and lines that begin with
// # are ignored.
func (a *Admin) Administrators() (hashes map[string]string, err error) {
	hashes = map[string]string{}
	number := 0
	for line := range strings.Lines(a.Users.Reveal()) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, hash, found := strings.Cut(line, ":")
		name, hash = strings.TrimSpace(name), strings.TrimSpace(hash)
		_, twice := hashes[name]
		switch problem := passwordhash.Problem(hash); {
		case !found || name == "":
			return nil, fmt.Errorf("line %d %w", number, errAdministrator)
		case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
			return nil, fmt.Errorf("line %d: the name contains unprintable characters", number)
		case twice:
			return nil, fmt.Errorf("line %d: duplicate administrator %s: remove one", number, name)
		case problem != "":
			return nil, fmt.Errorf("line %d: the hash of the administrator %s %s: create one with `babelftp hash-password`",
				number, name, problem)
		}
		hashes[name] = hash
	}
	return hashes, nil
}

// files returns the values that are file names.
func (a *Admin) files() []*string {
	return []*string{&a.TLS.CertFile, &a.TLS.KeyFile, &a.TLS.ClientCAFile, &a.OIDC.CAFile}
}

// check validates the section at p. The address itself is validated with all other addresses.
func (a *Admin) check(v *validator, p yamlconf.Path) {
	given := a.TLS.CertFile != "" || a.TLS.KeyFile != ""
	if a.Listen == "" {
		if given || a.TLS.ClientCAFile != "" || !a.Users.Empty() || a.OIDC.IsSet() || a.Roles != nil {
			v.report(p.Child("listen"), "is missing: write an address, like 127.0.0.1:9122, or remove the section")
		}
		return
	}
	tls := p.Child("tls")
	switch {
	case given:
		v.certificate(tls, a.TLS.CertFile, a.TLS.KeyFile)
	case a.TLS.ClientCAFile != "":
		v.report(tls.Child("cert_file"), "is missing: client_ca_file needs TLS")
	case !IsLoopback(a.Listen):
		if _, _, err := net.SplitHostPort(a.Listen); err == nil {
			v.report(tls.Child("cert_file"),
				"is missing: passwords would be sent in the clear; set a "+
					"certificate, or listen on 127.0.0.1")
		}
	}
	if _, err := Authorities(a.TLS.ClientCAFile); err != nil {
		v.report(tls.Child("client_ca_file"), "%v", err)
	}
	users, err := a.Administrators()
	switch {
	case err != nil:
		v.report(p.Child("users"), "%v", err)
	case len(users) == 0 && a.TLS.ClientCAFile == "" && !a.OIDC.IsSet():
		v.report(p.Child("users"),
			"is missing: write users_file, with a line NAME:HASH for each administrator, or tls.client_ca_file, or oidc")
	}
	// A misspelled name would be an administrator. The names in certificates are not known.
	for _, name := range slices.Sorted(maps.Keys(a.Roles)) {
		if _, known := users[name]; !known && err == nil && a.TLS.ClientCAFile == "" {
			v.report(p.Child("roles").Child(name), "is not an administrator in users: correct the name or remove it")
		}
	}
	if a.OIDC.IsSet() {
		a.OIDC.check(v, p.Child("oidc"), given)
	}
}

// IsLoopback reports whether a host, with or without a port, is a loopback address or localhost.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}
