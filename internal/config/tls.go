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

// TLS configures TLS. Without a certificate, AUTH TLS is refused.
type TLS struct {
	// Address for connections that start with TLS (implicit FTPS), host:port.
	ImplicitListen string `yaml:"implicit_listen" default:"none"`
	// PEM file with the certificate and its chain.
	CertFile string `yaml:"cert_file" path:"true" default:"none"`
	// PEM file with the private key.
	KeyFile string `yaml:"key_file" path:"true" default:"none"`
	// Refuse logins and data connections that are not encrypted.
	Required *bool `yaml:"required" default:"true with a certificate"`
	// Networks whose clients may connect without TLS, unless the tenant or the user requires it.
	OptionalNetworks []value.Network `yaml:"optional_networks" default:"none"`
	// Minimum TLS version.
	MinVersion value.TLSVersion `yaml:"min_version" default:"1.2"`
	// Cipher suites for TLS 1.2, by their IANA names.
	CipherSuites []CipherSuite `yaml:"cipher_suites" default:"all secure suites except CBC"`
	// Certificates from Let's Encrypt or another certificate authority, which the server obtains and renews itself
	// (ACME, RFC 8555). By using this section you agree to the terms of service of the authority.
	ACME ACME `yaml:"acme"`

	// Client certificates.
	ClientCertificates ClientCertificates `yaml:"client_certificates"`
}

// ClientCertificates configures client certificates. With `ca_file`, clients are asked for a certificate, and an
// invalid one refuses the login.
type ClientCertificates struct {
	// PEM file with the CA certificates that issue client certificates.
	CAFile string `yaml:"ca_file" path:"true" default:"none, or the server's"`
	// PEM file with a certificate revocation list (CRL) of each CA.
	CRLFile string `yaml:"crl_file" path:"true" default:"none"`
	// Refuse clients without a certificate.
	Required bool `yaml:"required"`
}

// TenantTLS has the TLS settings of a tenant, which override the server's.
type TenantTLS struct {
	// PEM file with the certificate for clients that connect to one of `hosts`.
	CertFile string `yaml:"cert_file" path:"true" default:"the server's"`
	// PEM file with the private key.
	KeyFile string `yaml:"key_file" path:"true" default:"the server's"`
	// Whether logins and data connections of the tenant must be encrypted.
	Required *bool `yaml:"required" default:"inherited from the server and the network"`
	// Refuse uploads that end without close_notify. With `false`, an upload whose connection was lost may be stored
	// as complete.
	StrictDataEOF *bool `yaml:"strict_data_eof" default:"true"`
	// Refuse data connections that do not resume the TLS session of the control connection (RFC 4217, section 10.2).
	RequireSessionReuse bool `yaml:"require_session_reuse"`

	// Client certificates for the tenant.
	ClientCertificates ClientCertificates `yaml:"client_certificates"`
}

// UserTLS has the TLS settings of a user, which override the tenant's.
type UserTLS struct {
	// Whether logins and data connections of the user must be encrypted.
	Required *bool `yaml:"required" default:"inherited from the tenant"`
}

// IsSet reports whether the server has a certificate.
func (t *TLS) IsSet() bool { return t.CertFile != "" || t.KeyFile != "" || t.ACME.IsSet() }

// IsRequired reports whether logins and data connections must be encrypted.
func (t *TLS) IsRequired() bool {
	if t.Required != nil {
		return *t.Required
	}
	return t.IsSet()
}

// Optional returns the networks whose clients may connect without TLS.
func (t *TLS) Optional() []netip.Prefix { return prefixesOf(t.OptionalNetworks) }

// checkRequired reports a problem if the section at p requires TLS, but the server has no certificate.
func (v *validator) checkRequired(p yamlconf.Path, required *bool) {
	if required != nil && *required && !v.cfg.TLS.IsSet() {
		v.report(p.Child("required"),
			"requires a certificate of the server: set tls.cert_file and tls.key_file, or tls.acme")
	}
}

// files returns the values that are file names.
func (t *TLS) files() []*string {
	return []*string{&t.CertFile, &t.KeyFile, &t.ClientCertificates.CAFile, &t.ClientCertificates.CRLFile}
}

// check validates the section at p.
func (t *TLS) check(v *validator, p yamlconf.Path) {
	t.checkSuites(v, p.Child("cipher_suites"))
	if len(t.OptionalNetworks) > 0 && !t.IsRequired() {
		v.report(p.Child("optional_networks"), "has no effect, because TLS is not required: remove it, or set required: true")
	}
	t.ClientCertificates.check(v, p.Child("client_certificates"), t.ClientCertificates)
	t.ACME.check(v, p.Child("acme"))
	if t.CertFile != "" || t.KeyFile != "" {
		v.certificate(p, t.CertFile, t.KeyFile)
	}
	if t.IsSet() {
		return
	}
	if t.IsRequired() {
		v.report(p.Child("required"), "requires a certificate: set tls.cert_file and tls.key_file, or tls.acme")
	}
	if t.ImplicitListen != "" {
		v.report(p.Child("implicit_listen"), "requires a certificate: set tls.cert_file and tls.key_file, or tls.acme")
	}
}

// files returns the values that are file names.
func (t *TenantTLS) files() []*string {
	return []*string{&t.CertFile, &t.KeyFile, &t.ClientCertificates.CAFile, &t.ClientCertificates.CRLFile}
}

// ClientCertificatesOf returns the settings of the tenant with unset values inherited from the server. A certificate
// that the server requires is required for each tenant.
func (t *TenantTLS) ClientCertificatesOf(server *TLS) ClientCertificates {
	c := t.ClientCertificates
	if c.CAFile == "" {
		c.CAFile, c.CRLFile = server.ClientCertificates.CAFile, server.ClientCertificates.CRLFile
	}
	c.Required = c.Required || server.ClientCertificates.Required
	return c
}

// check validates the section at p. all has the inherited values too.
func (c *ClientCertificates) check(v *validator, p yamlconf.Path, all ClientCertificates) {
	switch {
	case *c == ClientCertificates{}:
		return
	case !v.cfg.TLS.IsSet():
		v.report(p, "requires a certificate of the server: set tls.cert_file and tls.key_file")
		return
	case c.Required && all.CAFile == "":
		v.report(p.Child("required"),
			"requires ca_file: name the PEM file of the CAs that issue the certificates "+
				"of clients")
	case c.CRLFile != "" && c.CAFile == "":
		v.report(p.Child("crl_file"), "requires ca_file: name the PEM file of the CAs that have signed the lists")
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

// check validates the section at p of a tenant with these hosts.
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
			"requires hosts: write the names by which clients reach the tenant; TLS does not send addresses (RFC 6066, "+
				"section 3)")
	}
	if !server.IsSet() {
		v.report(p,
			"requires a certificate of the server too, for clients that send no server name: set tls.cert_file and "+
				"tls.key_file, or tls.acme")
	}
	v.certificate(p, t.CertFile, t.KeyFile)
}

// A CipherSuite is the IANA name of a TLS 1.2 cipher suite that Go considers secure.
type CipherSuite string

// Values implements [yamlconf.Enum].
func (CipherSuite) Values() []string {
	var names []string
	for _, suite := range secureSuites() {
		names = append(names, suite.Name)
	}
	return names
}

// secureSuites returns the TLS 1.2 cipher suites that Go considers secure.
func secureSuites() []*tls.CipherSuite {
	return slices.DeleteFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool {
		return !slices.Contains(s.SupportedVersions, tls.VersionTLS12)
	})
}

// SuiteIDs returns the enabled TLS 1.2 cipher suites: the configured ones, or else all AEAD suites. CBC mode has been
// vulnerable to padding oracle attacks. In TLS 1.3 all suites are AEAD.
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

// checkSuites validates the list at p.
func (t *TLS) checkSuites(v *validator, p yamlconf.Path) {
	switch {
	case t.CipherSuites == nil:
	case len(t.CipherSuites) == 0:
		v.report(p, "is empty: add a cipher suite, or remove the key to enable all secure suites")
	case t.MinVersion == tls.VersionTLS13:
		v.report(p, "works with TLS 1.2 only: remove it, or min_version")
	}
}
