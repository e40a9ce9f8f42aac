// Package certs provides TLS certificates (RFC 8446) for the server and its tenants.
//
// [Open] reads the certificate files in a configuration and returns a [Set]. [Set.Config] is the TLS configuration
// for listeners. It selects the certificate by the host name that the client sends (SNI, RFC 6066, section 3): the
// files of a tenant with this host, a certificate issued by an [ACME] (RFC 8555), or the files of the server. Changed
// files are reloaded without a restart, and [Set.Prepare] replaces the certificates when the configuration changes.
//
// [Set.Problems] and [Set.Warn] report certificates that have expired or expire soon.
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

// A Set holds the certificates of the server and of the tenants. [Set.Prepare] replaces them while the set is in use.
type Set struct {
	builtIn *tls.Certificate
	issued  Issuer // nil if ACME is not configured
	log     *slog.Logger
	current atomic.Pointer[set]
	tickets atomic.Pointer[[][32]byte] // set by SetTicketKeys, or nil
}

// A set holds the certificates of one configuration.
type set struct {
	server  *Files            // nil: use builtIn
	tenants map[string]*Files // by tenant
	byHost  map[string]*Files
	owners  map[string]string // tenants by host
	config  *tls.Config
}

// An Issuer provides certificates that are issued while the server runs, such as an [ACME].
type Issuer interface {
	// Hosts returns the managed host names. The certificate of the first one is used for clients that send no host
	// name.
	Hosts() []string
	// Certificate returns the certificate for a host, or nil if it was not issued yet.
	Certificate(host string) *tls.Certificate
}

// Open reads the certificates of a configuration. builtIn is used if the configuration has no files for the server.
// builtIn and issuer may be nil.
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

// A Change replaces the certificates when the configuration changes.
type Change struct {
	of   *Set
	next *set
}

// Apply makes the new certificates current.
func (c *Change) Apply() {
	c.of.current.Store(c.next)
	c.of.useTicketKeys()
}

// Prepare reads the certificates of a configuration without using them. Errors name the file.
func (s *Set) Prepare(cfg *config.Config) (*Change, error) { return s.prepare(cfg, (*Files).orOpen) }

// PrepareTenants is like Prepare, but does not read the files that are in use. Use it if the tenants of a configuration
// change and its files do not, so that a file which cannot be read at the moment does not matter.
func (s *Set) PrepareTenants(cfg *config.Config) (*Change, error) {
	return s.prepare(cfg, (*Files).orOpenNew)
}

// prepare reads the certificates with open, which returns its receiver if it has the given files.
func (s *Set) prepare(
	cfg *config.Config, open func(f *Files, cert, key string, log *slog.Logger) (*Files, error),
) (c *Change, err error) {
	before := s.current.Load()
	next := &set{tenants: map[string]*Files{}, byHost: map[string]*Files{}, owners: map[string]string{}}
	if cfg.TLS.CertFile != "" {
		if next.server, err = open(before.server, cfg.TLS.CertFile, cfg.TLS.KeyFile, s.log); err != nil {
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
		if next.tenants[name], err = open(before.tenants[name], t.TLS.CertFile, t.TLS.KeyFile, s.log); err != nil {
			return nil, err
		}
		for _, host := range t.Hosts {
			next.byHost[host] = next.tenants[name]
		}
	}
	next.config = s.configOf(cfg, next, before.config)
	return &Change{s, next}, nil
}

// configOf returns the TLS configuration. It returns the previous one if the settings are unchanged, so that session
// tickets stay valid.
func (s *Set) configOf(cfg *config.Config, next *set, before *tls.Config) *tls.Config {
	if next.server == nil && s.builtIn == nil && s.issued == nil {
		return nil
	}
	version := uint16(cfg.TLS.MinVersion)
	if version == 0 {
		version = tls.VersionTLS12 // RFC 8996 forbids older versions
	}
	suites, auth := cfg.TLS.SuiteIDs(), clientAuth(cfg)
	if before != nil && before.MinVersion == version && before.ClientAuth == auth &&
		slices.Equal(before.CipherSuites, suites) {
		return before
	}
	return &tls.Config{
		MinVersion: version, CipherSuites: suites, GetCertificate: s.certificate, ClientAuth: auth,
		VerifyConnection: clientcert.CheckSize,
	}
}

// clientAuth returns whether clients are asked for a certificate. It is verified by the login, because the
// certificate authorities depend on the tenant.
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

// Config returns the TLS configuration for listeners, or nil if the server has no certificate.
func (s *Set) Config() *tls.Config { return s.current.Load().config }

var (
	// errNotIssued fails handshakes until the authority has issued a certificate.
	errNotIssued = errors.New("no ACME certificate has been issued yet")
	// errRemoved fails handshakes that started before a reload removed the certificate.
	errRemoved = errors.New("the configuration no longer has a certificate")
)

// certificate returns the certificate for a handshake: the one of the tenant with this host, the one issued for this
// host, or the one of the server.
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

// A Certificate is a certificate that is presented to clients.
type Certificate struct {
	Tenant   string // empty for the certificate of the server
	Host     string // the first name in the certificate
	File     string // empty if issued by ACME
	NotAfter time.Time
}

// Certificates returns the certificates of the server, of the tenants in the order of their names, and of ACME. It
// reloads changed files first.
func (s *Set) Certificates() []Certificate {
	var all []Certificate
	add := func(tenant string, f *Files) {
		if f == nil {
			return
		}
		if host, ends := f.Expiry(); !ends.IsZero() {
			all = append(all, Certificate{Tenant: tenant, Host: host, File: f.cert, NotAfter: ends})
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
			all = append(all, Certificate{Tenant: current.owners[host], Host: host, NotAfter: c.Leaf.NotAfter})
		}
	}
	return all
}

// CertificatesFor returns the certificates that clients of a tenant with these hosts get, without duplicates, and the
// hosts for which ACME has not issued one yet.
func (s *Set) CertificatesFor(tenant string, hosts []string) (all []Certificate, missing []string) {
	current := s.current.Load()
	add := func(tenant string, f *Files) {
		if f == nil {
			return
		}
		c := Certificate{Tenant: tenant, File: f.cert}
		if c.Host, c.NotAfter = f.Expiry(); !c.NotAfter.IsZero() && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	if own := current.tenants[tenant]; own != nil {
		add(tenant, own)
		return all, nil
	}
	var managed []string
	if s.issued != nil {
		managed = s.issued.Hosts()
	}
	for _, host := range hosts {
		var c *tls.Certificate
		if slices.Contains(managed, host) {
			c = s.issued.Certificate(host)
		}
		switch {
		case c != nil:
			all = append(all, Certificate{Tenant: tenant, Host: host, NotAfter: c.Leaf.NotAfter})
		case current.server != nil:
			add("", current.server)
		case s.issued != nil:
			missing = append(missing, host)
		}
	}
	return all, missing
}

// hostOf returns the first DNS name of a certificate, or the common name of old certificates without DNS names.
func hostOf(c *x509.Certificate) string {
	if len(c.DNSNames) > 0 {
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}

const (
	// soon is the time before expiry when [Set.Problems] starts to warn. A certificate with a lifetime of 90 days is
	// due for renewal then.
	soon = 30 * 24 * time.Hour
	// verySoon is the time before expiry when the log starts to warn. Renewing a certificate with a lifetime of 90
	// days has failed for two weeks then.
	verySoon = 14 * 24 * time.Hour
)

// Expired reports whether the certificate has expired.
func (c Certificate) Expired(now time.Time) bool { return now.After(c.NotAfter) }

// String describes the certificate by its configuration key, its file and its host.
func (c Certificate) String() string {
	if c.File == "" {
		return "tls.acme: the certificate for " + c.Host
	}
	key := "tls"
	if c.Tenant != "" {
		key = "tenants." + c.Tenant + ".tls"
	}
	return fmt.Sprintf("%s.cert_file: the certificate in %s for %s", key, c.File, c.Host)
}

// Problems returns a line for each certificate that has expired, or that expires within 30 days.
func (s *Set) Problems(now time.Time) (ended, warnings []string) {
	for _, c := range s.Certificates() {
		day := c.NotAfter.UTC().Format(time.DateOnly)
		switch left := c.NotAfter.Sub(now); {
		case left < 0:
			ended = append(ended, fmt.Sprintf("%s expired on %s, and clients reject it: renew it", c, day))
		case left < soon:
			warnings = append(warnings, fmt.Sprintf("%s expires on %s, in %d days: renew it", c, day, left/(24*time.Hour)))
		}
	}
	return ended, warnings
}

// Warn logs the certificates that have expired or expire within 14 days.
func (s *Set) Warn(now time.Time) {
	for _, c := range s.Certificates() {
		log := s.log.With("tenant", c.Tenant, "host", c.Host, "file", c.File, "end", c.NotAfter)
		switch {
		case c.Expired(now):
			log.Error("certificate expired; renew it, because clients refuse it")
		case c.NotAfter.Sub(now) < verySoon:
			log.Warn("certificate expires soon; renew it")
		}
	}
}
