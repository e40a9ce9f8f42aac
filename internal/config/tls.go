package config

import (
	"crypto/tls"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/base/clientcert"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// TLS is how connections are encrypted. Without a certificate AUTH TLS is refused.
type TLS struct {
	// Address where TLS begins with the connection, host:port.
	ImplicitListen string `yaml:"implicit_listen" default:"none"`
	// PEM file of the certificate and its chain.
	CertFile string `yaml:"cert_file" path:"true" default:"none"`
	// PEM file of the certificate's key.
	KeyFile string `yaml:"key_file" path:"true" default:"none"`
	// Refuse logins and data connections that are not encrypted.
	Required *bool `yaml:"required" default:"true with a certificate"`
	// Networks whose clients need no TLS, unless their tenant or user requires it.
	OptionalNetworks []value.Network `yaml:"optional_networks" default:"none"`
	// Oldest version of TLS that the server accepts.
	MinVersion value.TLSVersion `yaml:"min_version" default:"1.2"`
	// Cipher suites of TLS 1.2, by the names of IANA.
	CipherSuites []CipherSuite `yaml:"cipher_suites" default:"all secure ones but CBC"`
	// Certificates from Let's Encrypt or another authority, which the server obtains and renews itself (ACME, RFC 8555).
	// With this section you agree to the authority's terms of service.
	ACME ACME `yaml:"acme"`

	// Certificates that clients show.
	ClientCertificates ClientCertificates `yaml:"client_certificates"`
}

// ClientCertificates are those that clients show to TLS. With `ca_file` the server asks for one, and refuses the
// login if that is not valid.
type ClientCertificates struct {
	// PEM file of the authorities that issue the certificates.
	CAFile string `yaml:"ca_file" path:"true" default:"none, or the server's"`
	// PEM file with the list of revoked certificates (CRL) of each authority.
	CRLFile string `yaml:"crl_file" path:"true" default:"none"`
	// Refuse clients that show no certificate.
	Required bool `yaml:"required"`
}

// TenantTLS is how the connections of a tenant are encrypted where that differs from the server's.
type TenantTLS struct {
	// PEM file of the certificate for clients that name one of `hosts` to TLS.
	CertFile string `yaml:"cert_file" path:"true" default:"the server's"`
	// PEM file of the certificate's key.
	KeyFile string `yaml:"key_file" path:"true" default:"the server's"`
	// Whether logins and data connections of the tenant must be encrypted.
	Required *bool `yaml:"required" default:"as the server and the network require"`
	// Refuse uploads that end without close_notify. With `false`, one that was cut can be stored as complete.
	StrictDataEOF *bool `yaml:"strict_data_eof" default:"true"`
	// Refuse data connections that do not reuse the TLS session of their control connection (RFC 4217 10.2).
	RequireSessionReuse bool `yaml:"require_session_reuse"`

	// Certificates that clients of the tenant show.
	ClientCertificates ClientCertificates `yaml:"client_certificates"`
}

// UserTLS is how the connections of a user are encrypted where that differs from the tenant's.
type UserTLS struct {
	// Whether logins and data connections of the user must be encrypted.
	Required *bool `yaml:"required" default:"as the tenant requires"`
}

// Given reports whether the server has a certificate.
func (t *TLS) Given() bool { return t.CertFile != "" || t.KeyFile != "" || t.ACME.Given() }

// IsRequired reports whether logins and data connections must be encrypted.
func (t *TLS) IsRequired() bool {
	if t.Required != nil {
		return *t.Required
	}
	return t.Given()
}

// Optional are the networks whose clients need no TLS.
func (t *TLS) Optional() []netip.Prefix { return prefixesOf(t.OptionalNetworks) }

// checkRequired reports that TLS is required, by the section that p leads to, of a server without a certificate.
func (v *validator) checkRequired(p yamlconf.Path, required *bool) {
	if required != nil && *required && !v.cfg.TLS.Given() {
		v.report(p.Child("required"),
			"needs a certificate of the server: write tls.cert_file and tls.key_file, or tls.acme")
	}
}

// files are the values that name files.
func (t *TLS) files() []*string {
	return []*string{&t.CertFile, &t.KeyFile, &t.ClientCertificates.CAFile, &t.ClientCertificates.CRLFile}
}

// check reports what is wrong with the section that p leads to.
func (t *TLS) check(v *validator, p yamlconf.Path) {
	t.checkSuites(v, p.Child("cipher_suites"))
	if len(t.OptionalNetworks) > 0 && !t.IsRequired() {
		v.report(p.Child("optional_networks"), "works only where TLS is required: remove it, or write required: true")
	}
	t.ClientCertificates.check(v, p.Child("client_certificates"), t.ClientCertificates)
	t.ACME.check(v, p.Child("acme"))
	if t.CertFile != "" || t.KeyFile != "" {
		v.certificate(p, t.CertFile, t.KeyFile)
	}
	if t.Given() {
		return
	}
	if t.IsRequired() {
		v.report(p.Child("required"), "needs a certificate: write tls.cert_file and tls.key_file, or tls.acme")
	}
	if t.ImplicitListen != "" {
		v.report(p.Child("implicit_listen"), "needs a certificate: write tls.cert_file and tls.key_file, or tls.acme")
	}
}

// files are the values that name files.
func (t *TenantTLS) files() []*string {
	return []*string{&t.CertFile, &t.KeyFile, &t.ClientCertificates.CAFile, &t.ClientCertificates.CRLFile}
}

// ClientCertificatesOf is what the tenant says over what the server says. What the server requires, each tenant does.
func (t *TenantTLS) ClientCertificatesOf(server *TLS) ClientCertificates {
	c := t.ClientCertificates
	if c.CAFile == "" {
		c.CAFile, c.CRLFile = server.ClientCertificates.CAFile, server.ClientCertificates.CRLFile
	}
	c.Required = c.Required || server.ClientCertificates.Required
	return c
}

// check reports what is wrong with the section that p leads to. all is what counts, also by the sections around it.
func (c *ClientCertificates) check(v *validator, p yamlconf.Path, all ClientCertificates) {
	switch {
	case *c == ClientCertificates{}:
		return
	case !v.cfg.TLS.Given():
		v.report(p, "needs a certificate of the server: write tls.cert_file and tls.key_file")
		return
	case c.Required && all.CAFile == "":
		v.report(p.Child("required"),
			"needs ca_file: name the PEM file of the authorities that issue the certificates "+
				"of clients")
	case c.CRLFile != "" && c.CAFile == "":
		v.report(p.Child("crl_file"), "needs ca_file: name the PEM file of the authorities that have signed the lists")
	}
	if c.CAFile == "" {
		return
	}
	log := slog.New(slog.DiscardHandler)
	if _, err := clientcert.Open(clientcert.Files{CA: c.CAFile}, log); err != nil {
		v.report(p.Child("ca_file"), "cannot be used: %v", err)
	} else if _, err := clientcert.Open(clientcert.Files{CA: c.CAFile, CRL: c.CRLFile}, log); err != nil {
		v.report(p.Child("crl_file"), "cannot be used: %v", err)
	}
}

// check reports what is wrong with the section that p leads to, of a tenant with these hosts.
func (t *TenantTLS) check(v *validator, p yamlconf.Path, hosts []string) {
	server := &v.cfg.TLS
	v.checkRequired(p, t.Required)
	t.ClientCertificates.check(v, p.Child("client_certificates"), t.ClientCertificatesOf(server))
	if t.CertFile == "" && t.KeyFile == "" {
		return
	}
	isName := func(host string) bool { _, err := netip.ParseAddr(host); return err != nil }
	if !slices.ContainsFunc(hosts, isName) {
		v.report(p,
			"needs hosts: write the names by which clients reach the tenant; TLS tells no addresses (RFC 6066, "+
				"section 3)")
	}
	if !server.Given() {
		v.report(p,
			"needs a certificate of the server too, for clients that name no host to TLS: write tls.cert_file and "+
				"tls.key_file, or tls.acme")
	}
	v.certificate(p, t.CertFile, t.KeyFile)
}

// A CipherSuite is the name of a suite of TLS 1.2 that Go calls secure, as IANA has it.
type CipherSuite string

// Values implements [yamlconf.Enum].
func (CipherSuite) Values() []string {
	var names []string
	for _, suite := range secureSuites() {
		names = append(names, suite.Name)
	}
	return names
}

// secureSuites are those of TLS 1.2 that Go calls secure.
func secureSuites() []*tls.CipherSuite {
	return slices.DeleteFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool {
		return !slices.Contains(s.SupportedVersions, tls.VersionTLS12)
	})
}

// SuiteIDs are the suites of TLS 1.2 that the server takes: those that are named, else all that authenticate the data
// as they encrypt it (AEAD). In CBC mode errors have leaked the text. TLS 1.3 has no such suites.
func (t *TLS) SuiteIDs() []uint16 {
	var ids []uint16
	for _, suite := range secureSuites() {
		named := slices.Contains(t.CipherSuites, CipherSuite(suite.Name))
		if named || len(t.CipherSuites) == 0 && !strings.Contains(suite.Name, "_CBC_") {
			ids = append(ids, suite.ID)
		}
	}
	return ids
}

// checkSuites reports what is wrong with the list that p leads to.
func (t *TLS) checkSuites(v *validator, p yamlconf.Path) {
	switch {
	case t.CipherSuites == nil:
	case len(t.CipherSuites) == 0:
		v.report(p, "there are none: write one at least, or remove the key for all secure ones")
	case t.MinVersion == tls.VersionTLS13:
		v.report(p, "works with TLS 1.2 only: remove it, or min_version")
	}
}
