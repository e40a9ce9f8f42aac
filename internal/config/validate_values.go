package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// certificate checks the values of cert_file and key_file in the section that p leads to. At least one is given.
func (v *validator) certificate(p yamlconf.Path, cert, key string) {
	readable := true
	for _, f := range []struct{ key, name, other string }{
		{"cert_file", cert, "key_file"},
		{"key_file", key, "cert_file"},
	} {
		if f.name == "" {
			v.report(p.Child(f.key), "is missing: it belongs to %s", p.Child(f.other))
			readable = false
		} else if _, err := os.ReadFile(f.name); err != nil {
			v.report(p.Child(f.key), "cannot read %s: %v", f.name, yamlconf.WithoutPath(err))
			readable = false
		}
	}
	if !readable {
		return
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		v.report(p.Child("cert_file"), "the certificate in %s and the key in %s do not work together: %v", cert, key, err)
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

// authorities checks the value of ca_file in the section that p leads to.
func (v *validator) authorities(p yamlconf.Path, name string) {
	if _, err := Authorities(name); err != nil {
		v.report(p.Child("ca_file"), "%v", err)
	}
}

// isURL reports whether text is the URL of a host with one of the schemes and without credentials.
func isURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Hostname() != "" && u.User == nil
}

// serverURL checks the address of a server. An empty one is fine.
func (v *validator) serverURL(p yamlconf.Path, text, server string) {
	if text == "" {
		return
	}
	if strings.Contains(text, "@") { // the value is not shown: it may hold a password
		v.report(p, "holds credentials: write them as access_key_id and secret_access_key")
		return
	}
	if u, err := url.Parse(text); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.RawQuery != "" {
		v.report(p, "%q is no address of %s: write it like https://s3.example.com", text, server)
	}
}

// notNegative checks a limit, which 0 takes away.
func notNegative[N int | time.Duration](v *validator, p yamlconf.Path, n N) {
	if n < 0 {
		v.report(p, "must be at least 0, which means no limit")
	}
}
