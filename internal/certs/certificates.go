// Package certs provides the certificates of the server and of the tenants to TLS (RFC 8446), and watches when
// they expire.
//
// [Open] reads the files that a configuration names. [Set.Config] is for listeners: it chooses a certificate by the
// host that the client names (SNI, RFC 6066, section 3). Files that change are read again, without a restart.
// [Set.Shown] tells when each one expires, [Set.Problems] and [Set.Warn] which ones expire soon. An [ACME] obtains
// certificates from an authority (RFC 8555), and renews them.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/clientcert"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config"
)

// A Set is the certificates of the server and of the tenants that have their own. [Set.Prepare] replaces them while
// they are in use.
type Set struct {
	builtIn *tls.Certificate
	issued  Issuer // nil without ACME
	log     *slog.Logger
	current atomic.Pointer[set]
}

// A set is the certificates of one configuration.
type set struct {
	server  *Files            // nil: builtIn
	tenants map[string]*Files // by name
	byHost  map[string]*Files
	owners  map[string]string // tenants by host
	config  *tls.Config
}

// An Issuer has certificates that an authority issues while the server runs. An [ACME] is one.
type Issuer interface {
	// Hosts are the names that have certificates, or will. The first one's is for clients that name no host.
	Hosts() []string
	// Certificate is the certificate of a host, nil as long as there is none.
	Certificate(host string) *tls.Certificate
}

// Open reads the certificates of a configuration. builtIn is shown where the configuration names no files; nil is
// none. So is a nil issuer. The error says which file cannot be read.
func Open(cfg *config.Config, builtIn *tls.Certificate, issuer Issuer, log *slog.Logger) (*Set, error) {
	s := &Set{builtIn: builtIn, issued: issuer, log: log}
	s.current.Store(&set{})
	first, err := s.Prepare(cfg)
	if err != nil {
		return nil, err
	}
	first.Apply()
	return s, nil
}

// A Change is the certificates of another configuration.
type Change struct {
	of   *Set
	next *set
}

// Apply shows the certificates from then on in place of those before.
func (c *Change) Apply() { c.of.current.Store(c.next) }

// Prepare reads the certificates of a configuration, and changes nothing. The error says which file cannot be read.
func (s *Set) Prepare(cfg *config.Config) (c *Change, err error) {
	before := s.current.Load()
	next := &set{tenants: map[string]*Files{}, byHost: map[string]*Files{}, owners: map[string]string{}}
	if cfg.TLS.CertFile != "" {
		if next.server, err = before.server.orOpen(cfg.TLS.CertFile, cfg.TLS.KeyFile, s.log); err != nil {
			return nil, err
		}
	}
	for name, t := range cfg.Tenants {
		for _, host := range t.Hosts {
			next.owners[host] = name
		}
		if t.TLS.CertFile == "" {
			continue
		}
		if next.tenants[name], err = before.tenants[name].orOpen(t.TLS.CertFile, t.TLS.KeyFile, s.log); err != nil {
			return nil, err
		}
		for _, host := range t.Hosts {
			next.byHost[host] = next.tenants[name]
		}
	}
	next.config = s.configOf(cfg, next, before.config)
	return &Change{s, next}, nil
}

// configOf is how connections are encrypted. It is the one before if nothing has changed, whose tickets clients can
// go on to use.
func (s *Set) configOf(cfg *config.Config, next *set, before *tls.Config) *tls.Config {
	if next.server == nil && s.builtIn == nil && s.issued == nil {
		return nil
	}
	version := uint16(cfg.TLS.MinVersion)
	if version == 0 {
		version = tls.VersionTLS12 // RFC 8996 forbids those before
	}
	suites, auth := cfg.TLS.SuiteIDs(), clientAuth(cfg)
	if before != nil && before.MinVersion == version && before.ClientAuth == auth &&
		slices.Equal(before.CipherSuites, suites) {
		return before
	}
	return &tls.Config{
		MinVersion: version, CipherSuites: suites, GetCertificate: s.certificate, ClientAuth: auth,
		VerifyConnection: clientcert.CheckShown,
	}
}

// clientAuth is whether the server asks clients for certificates. The login verifies them, because the tenant that it
// chooses says by which authorities.
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
func (s *Set) Config() *tls.Config { return s.current.Load().config }

var (
	// errNotIssued is for handshakes before the authority has issued a certificate.
	errNotIssued = errors.New("ACME has obtained no certificate yet")
	// errRemoved is for handshakes that began before a reload.
	errRemoved = errors.New("the configuration has no certificate any more")
)

// certificate returns the one for a handshake: that of the tenant whose host the client names, or the one issued for
// this host, else the server's.
func (s *Set) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	current, host := s.current.Load(), netaddr.NormalizeHost(hello.ServerName)
	if f, ok := current.byHost[host]; ok {
		return f.Current()
	}
	if s.issued != nil {
		if c := s.issued.Certificate(host); c != nil {
			return c, nil
		}
	}
	switch {
	case current.server != nil:
		return current.server.Current()
	case s.builtIn != nil:
		return s.builtIn, nil
	case s.issued == nil:
		return nil, errRemoved
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

// Shown are the certificates of a configuration: the server's, those of the tenants by their names, and those of
// ACME. Files that have changed are read first.
func (s *Set) Shown() []Shown {
	var all []Shown
	add := func(tenant string, f *Files) {
		if f == nil {
			return
		}
		if host, ends := f.Ends(); !ends.IsZero() {
			all = append(all, Shown{Tenant: tenant, Host: host, File: f.cert, Ends: ends})
		}
	}
	current := s.current.Load()
	add("", current.server)
	for _, name := range slices.Sorted(maps.Keys(current.tenants)) {
		add(name, current.tenants[name])
	}
	if s.issued == nil {
		return all
	}
	for _, host := range s.issued.Hosts() {
		if c := s.issued.Certificate(host); c != nil {
			all = append(all, Shown{Tenant: current.owners[host], Host: host, Ends: c.Leaf.NotAfter})
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
	// soon is how long before its expiry [Set.Problems] warns: a certificate of 90 days is renewed then.
	soon = 30 * 24 * time.Hour
	// verySoon is how long before its expiry the log warns. What renews a certificate of 90 days has failed for two
	// weeks then.
	verySoon = 14 * 24 * time.Hour
)

// Ended reports whether the certificate is no longer valid.
func (c Shown) Ended(now time.Time) bool { return now.After(c.Ends) }

// String says whose certificate it is, and when it expires.
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

// Problems says which certificates have expired, and which expire within 30 days, each in one line with what to do.
func (s *Set) Problems(now time.Time) (ended, warnings []string) {
	for _, c := range s.Shown() {
		day := c.Ends.UTC().Format(time.DateOnly)
		switch left := c.Ends.Sub(now); {
		case left < 0:
			ended = append(ended, fmt.Sprintf("%s expired on %s: renew it, clients refuse it", c, day))
		case left < soon:
			warnings = append(warnings, fmt.Sprintf("%s expires on %s, in %d days: renew it", c, day, left/(24*time.Hour)))
		}
	}
	return ended, warnings
}

// Warn writes to the log which certificates have expired, and which expire within 14 days.
func (s *Set) Warn(now time.Time) {
	for _, c := range s.Shown() {
		log := s.log.With("tenant", c.Tenant, "host", c.Host, "file", c.File, "end", c.Ends)
		switch {
		case c.Ended(now):
			log.Error("certificate has expired, and clients refuse it; renew it")
		case c.Ends.Sub(now) < verySoon:
			log.Warn("certificate expires soon; renew it")
		}
	}
}
