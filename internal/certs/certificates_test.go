package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// writeCertificate writes a certificate with this serial number and its key.
func writeCertificate(t *testing.T, files config.TLS, serial int64) {
	t.Helper()
	must.WriteCertificate(t, files.CertFile, files.KeyFile, &x509.Certificate{SerialNumber: big.NewInt(serial)})
}

// tlsConfig returns the TLS configuration for listeners.
func tlsConfig(cfg *config.Config, builtIn *tls.Certificate, log *slog.Logger) (*tls.Config, error) {
	s, err := Open(cfg, builtIn, nil, log)
	if err != nil {
		return nil, err
	}
	return s.Config(), nil
}

// serial returns the serial number of the certificate that is presented to a client with this server name, which may
// be empty.
func serial(t *testing.T, cfg *tls.Config, serverName string) int64 {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() { _ = tls.Server(theirs, cfg).HandshakeContext(t.Context()) }() // errors are reported by the client
	// only the serial number matters
	client := tls.Client(ours, &tls.Config{ServerName: serverName, InsecureSkipVerify: true})
	must.OK(t, client.HandshakeContext(t.Context()))
	return client.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// A changed certificate is used without a restart. If it is invalid, the previous one stays in use.
func TestReloadCertificate(t *testing.T) {
	dir := t.TempDir()
	files := config.TLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	writeCertificate(t, files, 1)
	cfg, err := tlsConfig(&config.Config{TLS: files}, nil, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	for _, step := range []struct {
		name string
		do   func()
		want int64
	}{
		{"first", func() {}, 1},
		{"renewed", func() { writeCertificate(t, files, 2) }, 2},
		{"broken", func() { must.ReplaceFile(t, files.CertFile, "half a certificate") }, 2},
		{"missing", func() { _ = os.Remove(files.KeyFile) }, 2},
		{"repaired", func() { writeCertificate(t, files, 3) }, 3},
	} {
		step.do()
		if got := serial(t, cfg, ""); got != step.want {
			t.Errorf("%s: got certificate %d, want %d", step.name, got, step.want)
		}
	}
}

// A client gets the certificate of the tenant that it names, which is reloaded when it changes.
func TestCertificateOfATenant(t *testing.T) {
	dir := t.TempDir()
	pair := func(name string) config.TLS {
		return config.TLS{CertFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key")}
	}
	acme := pair("acme")
	cfg := &config.Config{TLS: pair("server"), Tenants: map[string]*config.Tenant{
		"acme": {
			Hosts: []string{"ftp.acme.example", "xn--mnchen-3ya.example"},
			TLS:   config.TenantTLS{CertFile: acme.CertFile, KeyFile: acme.KeyFile},
		},
		"umbrella": {Hosts: []string{"ftp.umbrella.example"}},
	}}
	writeCertificate(t, cfg.TLS, 1)
	writeCertificate(t, acme, 2)
	log := slog.New(slog.DiscardHandler)
	tlsCfg, err := tlsConfig(cfg, nil, log)
	must.OK(t, err)
	for _, tc := range []struct {
		name, serverName string
		want             int64
	}{
		{"tenant", "ftp.acme.example", 2},
		{"in-capitals", "FTP.Acme.Example", 2},
		{"in-ascii", "xn--mnchen-3ya.example", 2},
		{"tenant-without", "ftp.umbrella.example", 1},
		{"unknown", "ftp.example", 1},
		{"below", "www.ftp.acme.example", 1},
		{"none", "", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := serial(t, tlsCfg, tc.serverName); got != tc.want {
				t.Errorf("got certificate %d, want %d", got, tc.want)
			}
		})
	}
	writeCertificate(t, acme, 3)
	if got := serial(t, tlsCfg, "ftp.acme.example"); got != 3 {
		t.Errorf("after the renewal: got certificate %d, want 3", got)
	}
	_ = os.Remove(acme.KeyFile)
	if _, err := tlsConfig(cfg, nil, log); err == nil {
		t.Error("accepted a missing file of a tenant")
	}
}

// Suites in CBC mode are disabled unless the configuration names one.
func TestCipherSuites(t *testing.T) {
	files := config.TLS{CertFile: filepath.Join(t.TempDir(), "crt"), KeyFile: filepath.Join(t.TempDir(), "key")}
	writeCertificate(t, files, 1)
	cfg, err := tlsConfig(&config.Config{TLS: files}, nil, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	for suite, accepted := range map[uint16]bool{
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:         true,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       true,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: true,
		tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA:            false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:          false,
	} {
		if slices.Contains(cfg.CipherSuites, suite) != accepted {
			t.Errorf("%s: accepted %v, want %v", tls.CipherSuiteName(suite), !accepted, accepted)
		}
	}
	handshake := func(cfg *tls.Config) error {
		ours, theirs := net.Pipe()
		defer ours.Close()
		// errors are reported by the client
		go func() { _ = tls.Server(theirs, cfg).HandshakeContext(t.Context()); _ = theirs.Close() }()
		return tls.Client(ours, &tls.Config{
			InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA},
		}).HandshakeContext(t.Context())
	}
	if handshake(cfg) == nil {
		t.Error("accepted a client that only supports CBC")
	}
	files.CipherSuites = []config.CipherSuite{"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"}
	if cfg, err = tlsConfig(&config.Config{TLS: files}, nil, slog.New(slog.DiscardHandler)); err != nil ||
		len(cfg.CipherSuites) != 1 {
		t.Fatalf("configured cipher suite: got %v, %v", cfg, err)
	}
	if err := handshake(cfg); err != nil {
		t.Errorf("configured cipher suite: %v", err)
	}
}

// Expired and expiring certificates are reported with what to do, until they are renewed.
func TestEndingCertificates(t *testing.T) {
	dir := t.TempDir()
	const day = 24 * time.Hour
	now := time.Now()
	cfg := &config.Config{Tenants: map[string]*config.Tenant{}}
	write := func(tenant, host string, left time.Duration) {
		cert, key := filepath.Join(dir, host+".crt"), filepath.Join(dir, host+".key")
		must.WriteCertificate(
			t, cert, key, &x509.Certificate{DNSNames: []string{host, "www." + host}, NotAfter: now.Add(left)})
		if tenant == "" {
			cfg.TLS = config.TLS{CertFile: cert, KeyFile: key}
			return
		}
		cfg.Tenants[tenant] = &config.Tenant{Hosts: []string{host},
			TLS: config.TenantTLS{CertFile: cert, KeyFile: key}}
	}
	write("", "ftp.example", 60*day)
	write("acme", "ftp.acme.example", -time.Minute)
	write("umbrella", "ftp.umbrella.example", 13*day+time.Hour)
	write("zebra", "ftp.zebra.example", 29*day+time.Hour)
	var log strings.Builder
	s, err := Open(cfg, nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
	must.OK(t, err)
	date := func(left time.Duration) string { return now.Add(left).UTC().Format(time.DateOnly) }
	ended, warnings := s.Problems(now)
	got := strings.ReplaceAll(strings.Join(append(ended, warnings...), "\n"), dir, "")
	want := "tenants.acme.tls.cert_file: the certificate in /ftp.acme.example.crt for ftp.acme.example expired on " +
		date(-time.Minute) +
		", and clients reject it: renew it\n" +
		"tenants.umbrella.tls.cert_file: the certificate in /ftp.umbrella.example.crt for ftp.umbrella.example expires on " + date(13*day+time.Hour) +
		", in 13 days: renew it\n" +
		"tenants.zebra.tls.cert_file: the certificate in /ftp.zebra.example.crt for ftp.zebra.example expires on " +
		date(29*day+time.Hour) +
		", in 29 days: renew it"
	if got != want || len(ended) != 1 {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s.Warn(now)
	for _, line := range []string{
		`level=ERROR msg="certificate expired; renew it, because clients refuse it" tenant=acme host=ftp.acme.example`,
		`level=WARN msg="certificate expires soon; renew it" tenant=umbrella host=ftp.umbrella.example`,
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log lacks %s", line)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("got %d log lines:\n%s", n, &log)
	}

	write("acme", "ftp.acme.example", 90*day) // the files change, but not the configuration
	write("umbrella", "ftp.umbrella.example", 90*day)
	if shown := s.Certificates(); len(shown) != 4 || shown[1].Tenant != "acme" ||
		shown[1].NotAfter.Unix() != now.Add(90*day).Unix() {
		t.Errorf("after a renewal: got %v", shown)
	}
	if ended, warnings := s.Problems(now); len(ended) != 0 || len(warnings) != 1 {
		t.Errorf("after a renewal: %v, %v", ended, warnings)
	}
}

func TestTLSConfig(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	if cfg, err := tlsConfig(&config.Config{}, nil, log); cfg != nil || err != nil {
		t.Errorf("without a certificate: got %v, %v", cfg, err)
	}
	if _, err := tlsConfig(
		&config.Config{TLS: config.TLS{CertFile: "nowhere", KeyFile: "nowhere"}}, nil, log); err == nil {
		t.Error("accepted missing files")
	}
	cfg, err := tlsConfig(&config.Config{}, &tls.Certificate{}, log)
	if err != nil || cfg == nil || cfg.MinVersion != tls.VersionTLS12 {
		t.Errorf("built-in certificate: got %v, %v", cfg, err)
	}
}

// issued is an Issuer with a fixed list of hosts and certificates.
type issued struct {
	hosts []string
	by    map[string]*tls.Certificate
}

func (i issued) Hosts() []string                          { return i.hosts }
func (i issued) Certificate(host string) *tls.Certificate { return i.by[host] }

// A certificate issued for a host is used for clients that name the host. The files of a tenant take precedence over
// it, and it takes precedence over the files of the server.
func TestIssuedCertificates(t *testing.T) {
	dir := t.TempDir()
	pair := func(serial int64) (cert, key string) {
		cert, key = filepath.Join(dir, fmt.Sprint(serial, ".crt")), filepath.Join(dir, fmt.Sprint(serial, ".key"))
		must.WriteCertificate(t, cert, key, &x509.Certificate{SerialNumber: big.NewInt(serial)})
		return cert, key
	}
	issue := func(serial int64) *tls.Certificate {
		c, err := tls.LoadX509KeyPair(pair(serial))
		must.OK(t, err)
		return &c
	}
	cfg := &config.Config{Tenants: map[string]*config.Tenant{"acme": {Hosts: []string{"ftp.acme.example"}},
		"umbrella": {Hosts: []string{"ftp.umbrella.example"}}}}
	umbrella := &cfg.Tenants["umbrella"].TLS
	umbrella.CertFile, umbrella.KeyFile = pair(2)
	authority := issued{[]string{"ftp.late.example", "ftp.acme.example", "ftp.umbrella.example"},
		map[string]*tls.Certificate{}}
	open := func() *Set {
		s, err := Open(cfg, nil, authority, slog.New(slog.DiscardHandler))
		must.OK(t, err)
		return s
	}
	s := open()
	if _, err := s.certificate(&tls.ClientHelloInfo{ServerName: "ftp.acme.example"}); !errors.Is(err, errNotIssued) {
		t.Errorf("before the first certificate: %v", err)
	}
	authority.by["ftp.acme.example"], authority.by["ftp.umbrella.example"] = issue(3), issue(4)
	if shown := s.Certificates(); len(shown) != 3 ||
		shown[1] != (Certificate{Tenant: "acme", Host: "ftp.acme.example", NotAfter: authority.by["ftp.acme.example"].Leaf.NotAfter}) {
		t.Errorf("unexpected certificates %v", shown)
	}
	check := func(s *Set, want map[string]int64) {
		t.Helper()
		for host, serialWanted := range want {
			if got := serial(t, s.Config(), host); got != serialWanted {
				t.Errorf("%s: got certificate %d, want %d", host, got, serialWanted)
			}
		}
	}
	check(s, map[string]int64{"FTP.acme.example": 3, "ftp.umbrella.example": 2, "ftp.late.example": 3, "ftp.example": 3, "": 3})
	cfg.TLS.CertFile, cfg.TLS.KeyFile = pair(1)
	check(open(), map[string]int64{"ftp.acme.example": 3, "ftp.umbrella.example": 2, "ftp.late.example": 1, "ftp.example": 1, "": 1})
}

// A tenant has the certificates that its clients get: its own, the ones from ACME, or the server's.
func TestCertificatesFor(t *testing.T) {
	dir := t.TempDir()
	pair := func(name string) config.TLS {
		files := config.TLS{CertFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key")}
		must.WriteCertificate(t, files.CertFile, files.KeyFile, &x509.Certificate{DNSNames: []string{name}})
		return files
	}
	issue := func(name string) *tls.Certificate {
		files := pair(name)
		c, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
		must.OK(t, err)
		return &c
	}
	acme := issued{[]string{"issued.example", "late.example"}, map[string]*tls.Certificate{"issued.example": issue("issued.example")}}
	own, server := pair("own.example"), pair("server.example")
	tenantTLS := config.TenantTLS{CertFile: own.CertFile, KeyFile: own.KeyFile}
	hosts := []string{"issued.example", "late.example", "other.example", "another.example"}
	for _, tt := range []struct {
		name    string
		tenant  config.Tenant
		server  config.TLS
		issuer  Issuer
		want    string
		missing string
	}{
		{"nothing", config.Tenant{}, server, acme, "", ""},
		{"own", config.Tenant{Hosts: hosts, TLS: tenantTLS}, server, acme, "own.example", ""},
		{"own-without-hosts", config.Tenant{TLS: tenantTLS}, server, nil, "own.example", ""},
		{"server", config.Tenant{Hosts: hosts}, server, nil, "server.example", ""},
		{"acme-and-server", config.Tenant{Hosts: hosts}, server, acme, "issued.example server.example", ""},
		{"acme", config.Tenant{Hosts: hosts}, config.TLS{}, acme, "issued.example",
			"late.example other.example another.example"},
		{"no-tls", config.Tenant{Hosts: hosts}, config.TLS{}, nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := &config.Config{TLS: tt.server, Tenants: map[string]*config.Tenant{"acme": &tt.tenant}}
			s, err := Open(cfg, nil, tt.issuer, slog.New(slog.DiscardHandler))
			must.OK(t, err)
			all, missing := s.CertificatesFor("acme", tt.tenant.Hosts)
			var names []string
			for _, c := range all {
				names = append(names, c.Host)
			}
			if strings.Join(names, " ") != tt.want || strings.Join(missing, " ") != tt.missing {
				t.Errorf("got %q, missing %q", names, missing)
			}
		})
	}
}

// A change of the configuration replaces certificates on open listeners. If a file cannot be read, nothing changes.
func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	first := config.TLS{CertFile: filepath.Join(dir, "1.crt"), KeyFile: filepath.Join(dir, "1.key")}
	second := config.TLS{CertFile: filepath.Join(dir, "2.crt"), KeyFile: filepath.Join(dir, "2.key")}
	writeCertificate(t, first, 1)
	writeCertificate(t, second, 2)
	s, err := Open(&config.Config{TLS: first}, nil, nil, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	listener := s.Config()
	prepare := func(cfg *config.Config, want bool) {
		t.Helper()
		next, err := s.Prepare(cfg)
		if (err == nil) != want {
			t.Fatalf("usable configuration: %v, %v", !want, err)
		}
		if want {
			next.Apply()
		}
	}
	acme := map[string]*config.Tenant{"acme": {Hosts: []string{"ftp.acme.example"}, TLS: config.TenantTLS{CertFile: second.CertFile, KeyFile: second.KeyFile}}}
	prepare(&config.Config{TLS: first, Tenants: acme}, true)
	if got := serial(t, listener, "ftp.acme.example"); got != 2 || s.Config() != listener {
		t.Errorf("tenant: got certificate %d", got)
	}
	must.ReplaceFile(t, second.KeyFile, "none")
	prepare(&config.Config{TLS: first, Tenants: acme}, false)
	if got := serial(t, listener, "ftp.acme.example"); got != 2 {
		t.Errorf("tenant after an invalid change: got certificate %d", got)
	}
	writeCertificate(t, second, 3)
	prepare(&config.Config{TLS: second}, true)
	if got := serial(t, listener, "ftp.acme.example"); got != 3 {
		t.Errorf("server: got certificate %d", got)
	}
	strict := second
	strict.MinVersion = tls.VersionTLS13
	prepare(&config.Config{TLS: strict}, true)
	if s.Config() == listener || s.Config().MinVersion != tls.VersionTLS13 {
		t.Error("the minimum TLS version did not change")
	}
	prepare(&config.Config{}, true)
	if s.Config() != nil {
		t.Error("unexpected certificate")
	}
	if _, err := s.certificate(&tls.ClientHelloInfo{}); !errors.Is(err, errRemoved) {
		t.Errorf("handshake in progress: unexpected error %v", err)
	}
}
