package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newCertificate makes a certificate and its key in PEM.
func newCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		DNSNames:     []string{"ftp.example.com"},
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)
}

func TestCertificate(t *testing.T) {
	cert, key := newCertificate(t)
	_, otherKey := newCertificate(t)
	for _, tc := range []struct {
		name, tls string
		files     map[string]string
		want      string // what the problem begins and ends with, around names of files
	}{
		{"pair", "{cert_file: tls.crt, key_file: tls.key, required: true, min_version: 1.3}", map[string]string{"tls.crt": cert, "tls.key": key}, ""},
		{
			"key-of-another", "{cert_file: tls.crt, key_file: tls.key}", map[string]string{"tls.crt": cert, "tls.key": otherKey},
			":1:18: tls.cert_file: the certificate in ... do not work together: tls: private key does not match public key",
		},
		{
			"no-certificate", "{cert_file: tls.crt, key_file: tls.key}", map[string]string{"tls.crt": "", "tls.key": key},
			":1:18: tls.cert_file: the certificate in ... do not work together: tls: failed to find any PEM data in certificate input",
		},
		{
			"implicit-without", `{implicit_listen: ":990"}`, nil,
			":1:24: tls.implicit_listen: needs a certificate: ...write tls.cert_file and tls.key_file",
		},
		{
			"old-version", `{min_version: 1.0}`, nil,
			`:1:20: tls.min_version: "1.0" is no version of TLS that may be used: ...write 1.2 or 1.3`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := load(t, "tls: "+tc.tls+minimal, tc.files)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if !filepath.IsAbs(cfg.TLS.CertFile) {
					t.Errorf("%s is not relative to the folder of the configuration", cfg.TLS.CertFile)
				}
				return
			}
			begin, end, _ := strings.Cut(tc.want, "...")
			if err == nil || !strings.Contains(err.Error(), begin) || !strings.HasSuffix(err.Error(), end) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}
