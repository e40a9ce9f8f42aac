package config

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"unicode"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Admin is how administrators reach the server over HTTP. An administrator sees all sessions and names of files,
// and can end sessions and uploads.
type Admin struct {
	// Address of the page and the API for administrators, host:port. Beyond this machine it needs `admin.tls`.
	Listen string `yaml:"listen" default:"none"`
	// Administrators, one `NAME:HASH` a line, with a hash by `babelftp hash-password`.
	Users value.Secret `yaml:"users" default:"none"`
	// Encryption of the connections of administrators.
	TLS AdminTLS `yaml:"tls"`
}

// AdminTLS is how the connections of administrators are encrypted.
type AdminTLS struct {
	// PEM file of the certificate and its chain.
	CertFile string `yaml:"cert_file" path:"true" default:"none"`
	// PEM file of the certificate's key.
	KeyFile string `yaml:"key_file" path:"true" default:"none"`
	// PEM file of the authorities that issue certificates to administrators only. The common name is the
	// administrator's name.
	ClientCAFile string `yaml:"client_ca_file" path:"true" default:"none"`
}

// errAdministrator is for a line that names no administrator. The line is not shown, because it may hold a password.
var errAdministrator = errors.New("is no administrator: write NAME:HASH, with a hash by `babelftp hash-password`")

// Administrators reads `admin.users`: the hashes of passwords by name. Lines that are empty or begin with # do not
// count.
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
			return nil, fmt.Errorf("line %d has a name with characters that cannot be printed", number)
		case twice:
			return nil, fmt.Errorf("line %d has the administrator %s again: remove one", number, name)
		case problem != "":
			return nil, fmt.Errorf("line %d: the hash of the administrator %s %s: make one by `babelftp hash-password`",
				number, name, problem)
		}
		hashes[name] = hash
	}
	return hashes, nil
}

// files are the values that name files.
func (a *Admin) files() []*string {
	return []*string{&a.TLS.CertFile, &a.TLS.KeyFile, &a.TLS.ClientCAFile}
}

// check reports what is wrong with the section that p leads to. The validator checks that the address is one.
func (a *Admin) check(v *validator, p yamlconf.Path) {
	given := a.TLS.CertFile != "" || a.TLS.KeyFile != ""
	if a.Listen == "" {
		if given || a.TLS.ClientCAFile != "" || !a.Users.Empty() {
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
				"is missing: beyond this machine passwords would be readable; write a "+
					"certificate, or listen on 127.0.0.1")
		}
	}
	if _, err := Authorities(a.TLS.ClientCAFile); err != nil {
		v.report(tls.Child("client_ca_file"), "%v", err)
	}
	switch users, err := a.Administrators(); {
	case err != nil:
		v.report(p.Child("users"), "%v", err)
	case len(users) == 0 && a.TLS.ClientCAFile == "":
		v.report(p.Child("users"),
			"is missing: write users_file, with a line NAME:HASH for each administrator, or tls.client_ca_file")
	}
}

// IsLoopback tells whether a host, with or without a port, is this machine and no other.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}
