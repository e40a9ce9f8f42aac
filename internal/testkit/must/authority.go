package must

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"
)

// An Authority issues certificates and revocation lists.
type Authority struct {
	Certificate string // PEM

	tb     testing.TB
	parsed *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// NewAuthority creates a self-signed authority.
func NewAuthority(tb testing.TB, name string) *Authority {
	tb.Helper()
	return (&Authority{tb: tb}).Authority(name)
}

// Authority creates an intermediate authority signed by this one.
func (a *Authority) Authority(name string) *Authority {
	a.tb.Helper()
	made := &Authority{tb: a.tb}
	der, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	})
	made.Certificate, made.key = encode("CERTIFICATE", der), key
	made.parsed = value(x509.ParseCertificate(der))(a.tb)
	return made
}

// Issue returns a certificate and its key in PEM. Unless the template says otherwise, the certificate is valid from
// an hour ago for two hours, and for client authentication.
func (a *Authority) Issue(template *x509.Certificate) (cert, key string) {
	a.tb.Helper()
	filled := *template
	if filled.ExtKeyUsage == nil {
		filled.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	der, private := a.sign(&filled)
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", value(x509.MarshalPKCS8PrivateKey(private))(a.tb))
}

// sign signs with the authority's key, or with the certificate's own key if the authority has none yet.
func (a *Authority) sign(template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	a.tb.Helper()
	key := value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.tb)
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	if template.SerialNumber == nil {
		a.serial++
		template.SerialNumber = big.NewInt(a.serial)
	}
	parent, parentKey := a.parsed, a.key
	if parent == nil {
		parent, parentKey = template, key
	}
	return value(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey))(a.tb), key
}

// Revoke returns a PEM revocation list with the given serial numbers. It expires in an hour unless the template
// says otherwise.
func (a *Authority) Revoke(template *x509.RevocationList, serials ...int64) string {
	a.tb.Helper()
	list := *template
	if list.Number == nil {
		list.Number = big.NewInt(1)
	}
	if list.ThisUpdate.IsZero() {
		list.ThisUpdate = time.Now().Add(-time.Minute)
	}
	if list.NextUpdate.IsZero() {
		list.NextUpdate = time.Now().Add(time.Hour)
	}
	for _, n := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{
			SerialNumber: big.NewInt(n), RevocationTime: list.ThisUpdate,
		})
	}
	return encode("X509 CRL", value(x509.CreateRevocationList(rand.Reader, &list, a.parsed, a.key))(a.tb))
}

// value returns v, or ends the test if err is not nil.
func value[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		OK(tb, err)
		return v
	}
}
