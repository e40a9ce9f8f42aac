// Package certificates provides the certificates of the server and of the tenants to TLS (RFC 8446), and watches when they end.
//
// [Open] reads the files that a configuration names. [Set.Config] is for listeners: it chooses a certificate by the host that the client names (SNI,
// RFC 6066, section 3). Files that change are read again, without a restart. [Set.Shown] tells when each
// one ends, [Set.Problems] and [Set.Warn] which ones end soon.
package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/wire"
)

// A Set is the certificates of the server and of the tenants that have their own.
type Set struct {
	server  *files // nil: builtIn
	builtIn *tls.Certificate
	tenants map[string]*files // by name
	byHost  map[string]*files
	issued  Issuer            // nil without ACME
	owners  map[string]string // tenants by host
	config  *tls.Config
	log     *slog.Logger
}

// An Issuer has certificates that an authority issues while the server runs. Package acme has one.
type Issuer interface {
	// Hosts are the names that have certificates, or will. The first one's is for clients that name no host.
	Hosts() []string
	// Certificate is the certificate of a host, nil as long as there is none.
	Certificate(host string) *tls.Certificate
}

// Open reads the certificates of a configuration. builtIn is shown where the configuration names no files; nil is none. So is a nil issuer. The error
// says which file cannot be read.
func Open(cfg *config.Config, builtIn *tls.Certificate, issuer Issuer, log *slog.Logger) (*Set, error) {
	s := &Set{builtIn: builtIn, issued: issuer, tenants: map[string]*files{}, byHost: map[string]*files{}, owners: map[string]string{}, log: log}
	var err error
	if cfg.TLS.CertFile != "" {
		if s.server, err = open(cfg.TLS.CertFile, cfg.TLS.KeyFile, log); err != nil {
			return nil, err
		}
	}
	for name, t := range cfg.Tenants {
		for _, host := range t.Hosts {
			s.owners[host] = name
		}
		if t.TLS.CertFile == "" {
			continue
		}
		if s.tenants[name], err = open(t.TLS.CertFile, t.TLS.KeyFile, log); err != nil {
			return nil, err
		}
		for _, host := range t.Hosts {
			s.byHost[host] = s.tenants[name]
		}
	}
	if s.server == nil && s.builtIn == nil && s.issued == nil {
		return s, nil
	}
	version := uint16(cfg.TLS.MinVersion)
	if version == 0 {
		version = tls.VersionTLS12 // RFC 8996 forbids those before
	}
	s.config = &tls.Config{
		MinVersion: version, CipherSuites: cfg.TLS.SuiteIDs(), GetCertificate: s.certificate, ClientAuth: clientAuth(cfg),
	}
	return s, nil
}

// clientAuth is whether the server asks clients for certificates. The login verifies them, because the tenant that it chooses says by which
// authorities.
func clientAuth(cfg *config.Config) tls.ClientAuthType {
	asks := cfg.TLS.ClientCertificates.CAFile != ""
	for _, t := range cfg.Tenants {
		asks = asks || t.TLS.ClientCertificates.CAFile != ""
	}
	if asks {
		return tls.RequestClientCert
	}
	return tls.NoClientCert
}

// Config is how connections are encrypted, nil without a certificate of the server.
func (s *Set) Config() *tls.Config { return s.config }

// errNotIssued is for handshakes before the authority has issued a certificate.
var errNotIssued = errors.New("ACME has obtained no certificate yet")

// certificate returns the one for a handshake: that of the tenant whose host the client names, or the one issued for this host, else the server's.
func (s *Set) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := wire.NormalizeHost(hello.ServerName)
	if f, ok := s.byHost[host]; ok {
		return f.Current()
	}
	if s.issued != nil {
		if c := s.issued.Certificate(host); c != nil {
			return c, nil
		}
	}
	switch {
	case s.server != nil:
		return s.server.Current()
	case s.builtIn != nil:
		return s.builtIn, nil
	}
	for _, other := range s.issued.Hosts() {
		if c := s.issued.Certificate(other); c != nil {
			return c, nil
		}
	}
	return nil, errNotIssued
}

// A Shown is a certificate that clients are shown.
type Shown struct {
	Tenant string // empty for the server's
	Host   string // the first name in the certificate
	File   string // empty if ACME has obtained it
	Ends   time.Time
}

// Shown are the certificates of a configuration: the server's, those of the tenants by their names, and those of ACME. Files that have changed are
// read first.
func (s *Set) Shown() []Shown {
	var all []Shown
	add := func(tenant string, f *files) {
		if f == nil {
			return
		}
		if c, err := f.Current(); err == nil && c.Leaf != nil {
			all = append(all, Shown{Tenant: tenant, Host: hostOf(c.Leaf), File: f.cert, Ends: c.Leaf.NotAfter})
		}
	}
	add("", s.server)
	for _, name := range slices.Sorted(maps.Keys(s.tenants)) {
		add(name, s.tenants[name])
	}
	if s.issued == nil {
		return all
	}
	for _, host := range s.issued.Hosts() {
		if c := s.issued.Certificate(host); c != nil {
			all = append(all, Shown{Tenant: s.owners[host], Host: host, Ends: c.Leaf.NotAfter})
		}
	}
	return all
}

// hostOf is the first name in a certificate. An old one has it in its subject alone.
func hostOf(c *x509.Certificate) string {
	if len(c.DNSNames) > 0 {
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}

const (
	// soon is how long before its end [Set.Problems] warns: a certificate of 90 days is renewed then.
	soon = 30 * 24 * time.Hour
	// verySoon is how long before its end the log warns. What renews a certificate of 90 days has failed for two weeks then.
	verySoon = 14 * 24 * time.Hour
)

// Ended reports whether the certificate is no longer valid.
func (c Shown) Ended(now time.Time) bool { return now.After(c.Ends) }

// String says whose certificate it is, and when it ends.
func (c Shown) String() string {
	if c.File == "" {
		return "tls.acme: the certificate for " + c.Host
	}
	key := "tls"
	if c.Tenant != "" {
		key = "tenants." + c.Tenant + ".tls"
	}
	return fmt.Sprintf("%s.cert_file: the certificate in %s for %s", key, c.File, c.Host)
}

// Problems says which certificates have ended, and which end within 30 days, each in one line with what to do.
func (s *Set) Problems(now time.Time) (ended, warnings []string) {
	for _, c := range s.Shown() {
		day := c.Ends.UTC().Format(time.DateOnly)
		switch left := c.Ends.Sub(now); {
		case left < 0:
			ended = append(ended, fmt.Sprintf("%s has ended on %s: renew it, clients refuse it", c, day))
		case left < soon:
			warnings = append(warnings, fmt.Sprintf("%s ends on %s, in %d days: renew it", c, day, left/(24*time.Hour)))
		}
	}
	return ended, warnings
}

// Warn writes to the log which certificates have ended, and which end within 14 days.
func (s *Set) Warn(now time.Time) {
	for _, c := range s.Shown() {
		log := s.log.With("tenant", c.Tenant, "host", c.Host, "file", c.File, "end", c.Ends)
		switch {
		case c.Ended(now):
			log.Error("certificate has ended, and clients refuse it; renew it")
		case c.Ends.Sub(now) < verySoon:
			log.Warn("certificate ends soon; renew it")
		}
	}
}
