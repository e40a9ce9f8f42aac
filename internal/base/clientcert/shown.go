package clientcert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// What a client may show of certificates: TLS takes 256 KiB, and a session keeps them as long as it lives, also
// before the login.
const (
	// maxCertificates is how many there may be: the client's own, and those of authorities between.
	maxCertificates = 8
	// maxCertificateBytes is how many bytes they have at most: several of RSA with 4096 bits, or two of ML-DSA.
	maxCertificateBytes = 16 << 10
	// maxCertificateValues is how many names, addresses and extensions they have at most. One of some bytes takes
	// more than a hundred in memory.
	maxCertificateValues = 256
)

// ErrShown reports a client that has shown more of certificates than a session keeps.
var ErrShown = errors.New(
	"the client has shown more than 8 certificates, 16 KiB or 256 names; let it send only its own and those of " +
		"authorities between")

// CheckShown is the VerifyConnection of [tls.Config] for each listener that asks clients for certificates. It refuses
// a handshake with more than a session keeps.
func CheckShown(state tls.ConnectionState) error {
	size, values := 0, 0
	for _, c := range state.PeerCertificates {
		size += len(c.Raw)
		values += valuesOf(c)
	}
	if len(state.PeerCertificates) > maxCertificates || size > maxCertificateBytes || values > maxCertificateValues {
		return ErrShown
	}
	return nil
}

// valuesOf is how many values of a certificate its sender may repeat at will.
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
