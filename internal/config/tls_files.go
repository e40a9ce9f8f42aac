package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// checkPair reports what is wrong with the values of cert_file and key_file in the section that p leads to. At least
// one is given.
func checkPair(p yamlconf.Path, cert, key string, report yamlconf.Report) {
	readable := true
	for _, f := range []struct{ key, name, other string }{
		{"cert_file", cert, "key_file"},
		{"key_file", key, "cert_file"},
	} {
		if f.name == "" {
			report(p.Child(f.key), "is missing: it belongs to %s", p.Child(f.other))
			readable = false
		} else if _, err := os.ReadFile(f.name); err != nil {
			report(p.Child(f.key), "cannot read %s: %v", f.name, yamlconf.WithoutPath(err))
			readable = false
		}
	}
	if !readable {
		return
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		report(p.Child("cert_file"), "the certificate in %s and the key in %s do not work together: %v", cert, key, err)
	}
}

// Authorities reads the certificates of authorities in a PEM file. Without a name they are nil, which stands for
// those of the system.
func Authorities(name string) (*x509.CertPool, error) {
	if name == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, yamlconf.WithoutPath(err))
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM: name the file of the authorities", name)
	}
	return pool, nil
}
