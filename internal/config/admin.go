package config

import (
	"net"
	"strings"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Admin is how administrators reach the server over HTTP. An administrator sees all sessions and names of files,
// and can end sessions and uploads.
type Admin struct {
	// Address of the page and the API for administrators, host:port. Beyond this machine it needs `admin.tls`.
	Listen string `yaml:"listen" default:"none"`
	// Secret of administrators, 32 characters or more. A certificate of `admin.tls.client_ca_file` can take its place.
	Token value.Secret `yaml:"token" default:"none"`
	// Encryption of the connections of administrators.
	TLS AdminTLS `yaml:"tls"`
}

// AdminTLS is how the connections of administrators are encrypted.
type AdminTLS struct {
	// PEM file of the certificate, the server's own first. The server reads it again when it changes.
	CertFile string `yaml:"cert_file" default:"none"`
	// PEM file of the certificate's key.
	KeyFile string `yaml:"key_file" default:"none"`
	// PEM file of the authorities that issue certificates to administrators, and to no others. Without `admin.token`
	// they are required.
	ClientCAFile string `yaml:"client_ca_file" default:"none"`
}

// minAdminToken is the shortest token, in bytes: 16 random bytes in hexadecimal.
const minAdminToken = 32

// files are the values that name files.
func (a *Admin) files() []*string {
	return []*string{&a.TLS.CertFile, &a.TLS.KeyFile, &a.TLS.ClientCAFile}
}

// check reports what is wrong with the section that p leads to. The validator checks that the address is one.
func (a *Admin) check(v *validator, p yamlconf.Path) {
	given := a.TLS.CertFile != "" || a.TLS.KeyFile != ""
	if a.Listen == "" {
		if given || a.TLS.ClientCAFile != "" || !a.Token.Empty() {
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
				"is missing: beyond this machine the token would be readable; write a "+
					"certificate, or listen on 127.0.0.1")
		}
	}
	if _, err := Authorities(a.TLS.ClientCAFile); err != nil {
		v.report(tls.Child("client_ca_file"), "%v", err)
	}
	switch token := a.Token.Reveal(); {
	case token == "" && a.TLS.ClientCAFile == "":
		v.report(p.Child("token"),
			"is missing: write a random one, like that of `openssl rand -hex 32`, or tls.client_ca_file")
	case token != "" && len(token) < minAdminToken:
		v.report(p.Child("token"),
			"is shorter than %d characters: write a random one, like that of `openssl rand -hex 32`",
			minAdminToken)
	}
}

// IsLoopback tells whether a host, with or without a port, is this machine and no other.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}
