// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// New makes a certificate that has signed itself, and its key, both in PEM. It is for the names and addresses of the template;
// a serial number may be given too.
func New(tb testing.TB, template *x509.Certificate) (cert, key string) {
	tb.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	filled := *template
	filled.Subject = pkix.Name{CommonName: "babelftp tests"} // GnuTLS and OpenSSL want a name
	filled.NotBefore, filled.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if filled.SerialNumber == nil {
		filled.SerialNumber = big.NewInt(1)
	}
	der, err := x509.CreateCertificate(rand.Reader, &filled, &filled, private.Public(), private)
	if err != nil {
		tb.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		tb.Fatal(err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
