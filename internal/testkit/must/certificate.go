package must

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"
)

// Certificate returns a self-signed certificate and its key in PEM. The template sets the names and addresses, and
// optionally a serial number and an expiration.
func Certificate(tb testing.TB, template *x509.Certificate) (cert, key string) {
	tb.Helper()
	cert, key, err := MakeCertificate(template)
	OK(tb, err)
	return cert, key
}

// CertificatePair returns a server certificate made by [Certificate], and the configuration of a client that trusts
// it under the name 127.0.0.1.
func CertificatePair(tb testing.TB, template *x509.Certificate) (server tls.Certificate, client *tls.Config) {
	tb.Helper()
	cert, key := Certificate(tb, template)
	server, err := tls.X509KeyPair([]byte(cert), []byte(key))
	OK(tb, err)
	return server, &tls.Config{RootCAs: CertPool(cert), ServerName: "127.0.0.1"}
}

// CertPool returns a pool with one PEM certificate.
func CertPool(cert string) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(cert))
	return pool
}

// WriteCertificate writes the result of [Certificate] to two files. Like a renewal, it replaces existing files.
func WriteCertificate(tb testing.TB, certFile, keyFile string, template *x509.Certificate) {
	tb.Helper()
	cert, key := Certificate(tb, template)
	ReplaceFile(tb, certFile, cert)
	ReplaceFile(tb, keyFile, key)
}

// ReplaceFile atomically replaces a file.
func ReplaceFile(tb testing.TB, name, content string) {
	tb.Helper()
	OK(tb, os.WriteFile(name+".new", []byte(content), 0o600))
	OK(tb, os.Rename(name+".new", name))
}

// MakeCertificate is like [Certificate] but returns an error.
func MakeCertificate(template *x509.Certificate) (cert, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	filled := *template
	filled.Subject = pkix.Name{CommonName: "babelftp tests"} // GnuTLS and OpenSSL require a subject
	filled.NotBefore = time.Now().Add(-time.Hour)
	if filled.NotAfter.IsZero() {
		filled.NotAfter = time.Now().Add(time.Hour)
	}
	if filled.SerialNumber == nil {
		filled.SerialNumber = big.NewInt(1)
	}
	der, err := x509.CreateCertificate(rand.Reader, &filled, &filled, private.Public(), private)
	if err != nil {
		return "", "", err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", err
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER), nil
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
