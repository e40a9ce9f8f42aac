package value

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// A ClientCertificate selects client certificates: one by its fingerprint, or all with a certain name.
type ClientCertificate struct{ kind, name string }

// The kinds of names, which precede the colon.
const (
	certificateSHA256  = "sha256"
	certificateSubject = "subject"
	certificateEmail   = "email"
	certificateDNS     = "dns"
	certificateURI     = "uri"
)

// UnmarshalText parses a fingerprint ("sha256:" and 64 hexadecimal digits, optionally with colons), a complete
// subject in the format of RFC 4514 ("subject:CN=alice,O=Acme"), or a subject alternative name ("email:", "dns:" or
// "uri:").
func (c *ClientCertificate) UnmarshalText(text []byte) error {
	kind, name, _ := strings.Cut(string(text), ":")
	ok := name != ""
	switch kind {
	case certificateSHA256:
		name = strings.ToLower(strings.ReplaceAll(name, ":", ""))
		sum, err := hex.DecodeString(name)
		ok = err == nil && len(sum) == sha256.Size
	case certificateSubject:
		ok = strings.Contains(name, "=")
	case certificateEmail:
		ok = strings.Contains(name, "@")
	case certificateURI:
		u, err := url.Parse(name)
		ok = err == nil && u.IsAbs()
	case certificateDNS:
		name = strings.ToLower(name)
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf(
			"%q does not select a certificate: write sha256: and the fingerprint, subject:CN=alice,O=Acme, "+
				"email:alice@acme.example, "+
				"dns:till-7.acme.example or uri:spiffe://acme.example/till-7", text)
	}
	c.kind, c.name = kind, name
	return nil
}

// Matches reports whether the certificate is selected.
func (c ClientCertificate) Matches(cert *x509.Certificate) bool {
	switch c.kind {
	case certificateSHA256:
		sum := sha256.Sum256(cert.Raw)
		name, err := hex.DecodeString(c.name)
		return err == nil && bytes.Equal(sum[:], name)
	case certificateSubject:
		return CertificateSubject(cert) == c.name
	case certificateEmail:
		return slices.Contains(cert.EmailAddresses, c.name)
	case certificateDNS:
		return slices.ContainsFunc(cert.DNSNames, func(name string) bool { return strings.ToLower(name) == c.name })
	case certificateURI:
		return slices.ContainsFunc(cert.URIs, func(u *url.URL) bool { return u.String() == c.name })
	}
	return false
}

// CertificateSubject returns the subject in the format of RFC 4514, with all of its parts in their original order.
func CertificateSubject(cert *x509.Certificate) string {
	var names pkix.RDNSequence
	if rest, err := asn1.Unmarshal(cert.RawSubject, &names); err != nil || len(rest) > 0 {
		return ""
	}
	return names.String()
}

// String returns the text that UnmarshalText parses.
func (c ClientCertificate) String() string { return c.kind + ":" + c.name }
