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

// A ClientCertificate says which certificates of clients are meant: one by its fingerprint, or all that name a subject.
type ClientCertificate struct{ kind, name string }

// The kinds of a ClientCertificate, before the colon.
const (
	certificateSHA256  = "sha256"
	certificateSubject = "subject"
	certificateEmail   = "email"
	certificateDNS     = "dns"
	certificateURI     = "uri"
)

// UnmarshalText reads a fingerprint ("sha256:" and 64 hexadecimal digits, with or without colons) or the whole
// subject as RFC 4514 writes it ("subject:CN=alice,O=Acme"). It also reads a name among the alternative names
// ("email:", "dns:" and "uri:").
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
			"%q names no certificate: write sha256: and its fingerprint, subject:CN=alice,O=Acme, "+
				"email:alice@acme.example, "+
				"dns:till-7.acme.example or uri:spiffe://acme.example/till-7", text)
	}
	c.kind, c.name = kind, name
	return nil
}

// Matches tells whether a certificate is meant.
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

// CertificateSubject is the subject of a certificate as RFC 4514 writes it, with all of its parts in their order.
func CertificateSubject(cert *x509.Certificate) string {
	var names pkix.RDNSequence
	if rest, err := asn1.Unmarshal(cert.RawSubject, &names); err != nil || len(rest) > 0 {
		return ""
	}
	return names.String()
}
