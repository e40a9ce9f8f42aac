package clientcert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// Limits of the certificates of a client. TLS alone would accept 256 KiB, and a session keeps the certificates in
// memory, even before the login.
const (
	// maxCertificates is the maximum number of certificates, including intermediate ones.
	maxCertificates = 8
	// maxCertificateBytes is the maximum total size: enough for several certificates with 4096-bit RSA keys, or for two
	// with ML-DSA.
	maxCertificateBytes = 16 << 10
	// maxCertificateValues is the maximum total number of names, addresses and extensions. A value of a few bytes uses
	// more than a hundred bytes of memory.
	maxCertificateValues = 256
)

// ErrTooLarge is returned if the certificates of a client exceed the limits.
var ErrTooLarge = errors.New(
	"the client sent more than 8 certificates, 16 KiB or 256 names; configure it to send only its own " +
		"certificate and intermediate ones")

// CheckSize rejects a handshake if the certificates of the client exceed the limits. Use it as VerifyConnection of the
// [tls.Config] of each listener that requests client certificates.
func CheckSize(state tls.ConnectionState) error {
	size, values := 0, 0
	for _, c := range state.PeerCertificates {
		size += len(c.Raw)
		values += valuesOf(c)
	}
	if len(state.PeerCertificates) > maxCertificates || size > maxCertificateBytes || values > maxCertificateValues {
		return ErrTooLarge
	}
	return nil
}

// valuesOf returns the number of values in a certificate that can be repeated arbitrarily.
func valuesOf(c *x509.Certificate) (n int) {
	for _, names := range [][]string{
		c.DNSNames, c.EmailAddresses, c.OCSPServer, c.IssuingCertificateURL, c.CRLDistributionPoints,
		c.PermittedDNSDomains, c.ExcludedDNSDomains,
		c.PermittedEmailAddresses, c.ExcludedEmailAddresses, c.PermittedURIDomains, c.ExcludedURIDomains,
	} {
		n += len(names)
	}
	return n + len(c.IPAddresses) + len(c.URIs) + len(c.PermittedIPRanges) + len(c.ExcludedIPRanges) +
		len(c.Extensions) + len(c.Subject.Names) +
		len(c.Issuer.Names) + len(c.ExtKeyUsage) + len(c.UnknownExtKeyUsage) + len(c.Policies) +
		len(c.PolicyIdentifiers) + len(c.PolicyMappings) +
		len(c.UnhandledCriticalExtensions)
}
