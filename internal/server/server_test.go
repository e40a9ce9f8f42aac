package server

import (
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

func TestMain(m *testing.M) { s3test.Main(ftptest.Texts{M: m, Reader: ftptest.Server}) }

// simulated returns a simulated AWS, and the configuration of a server that uses it.
func simulated(t *testing.T) (*s3test.Server, *config.Config) {
	t.Helper()
	s := s3test.Start(t, "sim-aws")
	return s, servicetest.NewConfig(t, s)
}

// ImplicitAddr returns the address of the control connection with implicit TLS.
func (s *Server) ImplicitAddr() net.Addr { return s.implicit.Addr() }

// MetricsAddr returns the address of the metrics and health probes.
func (s *Server) MetricsAddr() net.Addr { return s.metricsListener.Addr() }

// start starts a server that serves until the end of the test, and waits for the first check of its buckets.
func start(t *testing.T, cfg *config.Config, opts Options) *Server {
	t.Helper()
	srv := serve(t, cfg, opts)
	waitForChecks(t, srv)
	return srv
}

// serve starts a server that serves until the end of the test.
func serve(t *testing.T, cfg *config.Config, opts Options) *Server {
	t.Helper()
	must.OK(t, cfg.Validate())
	srv, err := New(t.Context(), cfg, opts)
	must.OK(t, err)
	ftptest.Serve(t, srv)
	return srv
}

// waitForChecks waits for the first check of each bucket. Logins wait for it too, but only a few seconds, which may be
// too short on a busy machine.
func waitForChecks(t *testing.T, srv *Server) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, b := range srv.buckets() {
		for known := false; !known; known, _ = b.Up() {
			if time.Now().After(deadline) {
				t.Fatalf("the server did not check the bucket %q", b.Name)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// get sends a request to the metrics listener.
func get(t *testing.T, srv *Server, path string) (int, string) {
	t.Helper()
	return servicetest.Get(t, "http://"+srv.MetricsAddr().String()+path)
}

// A session uses the texts of its tenant, and knows the user's last login.
func TestTenantTexts(t *testing.T) {
	s, cfg := simulated(t)
	acme := cfg.Tenants["acme"]
	acme.Welcome = map[language.Tag]string{language.English: "Hello {User}.\nSeen on {LastLogin}."}
	acme.Messages = map[i18n.ID]map[language.Tag]i18n.Text{
		i18n.Goodbye: {language.English: {Msg: "Acme says goodbye."}},
	}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	for _, before := range []bool{false, true} {
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(331, "USER alice")
		welcome := c.Command(230, "PASS "+servicetest.Password)
		if !strings.HasPrefix(welcome, "Hello alice.\n") || strings.Contains(welcome, "\n Seen on 2") != before {
			t.Errorf("logged in before: %t: unexpected welcome %q", before, welcome)
		}
		c.WantReply(221, "Acme says goodbye.", "QUIT")
	}
}

// The metrics show when each certificate expires, even if the file was replaced after the start.
func TestMetricsOfCertificates(t *testing.T) {
	s, cfg := simulated(t)
	dir := t.TempDir()
	cfg.TLS = config.TLS{ImplicitListen: "127.0.0.1:0", CertFile: dir + "/server.crt", KeyFile: dir + "/server.key"}
	must.WriteCertificate(t, cfg.TLS.CertFile, cfg.TLS.KeyFile, &x509.Certificate{})
	acme := config.TLS{CertFile: dir + "/acme.crt", KeyFile: dir + "/acme.key"}
	must.WriteCertificate(t, acme.CertFile, acme.KeyFile, &x509.Certificate{})
	cfg.Tenants["acme"].TLS = config.TenantTLS{CertFile: acme.CertFile, KeyFile: acme.KeyFile}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	end := time.Now().Add(48 * time.Hour)
	for _, files := range []config.TLS{cfg.TLS, acme} {
		must.WriteCertificate(t, files.CertFile, files.KeyFile, &x509.Certificate{NotAfter: end})
	}
	_, metrics := get(t, srv, "/metrics")
	for _, tenant := range []string{"", "acme"} {
		line := fmt.Sprintf(
			"babelftp_tls_certificate_expiry_timestamp_seconds{host=\"babelftp tests\",tenant=%q} %g\n", tenant,
			float64(end.Unix()))
		if !strings.Contains(metrics, line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}

// If an address or socket is in use, the server does not start, and nothing else stays open.
func TestListenErrors(t *testing.T) {
	busy := must.Listen(t)
	file := filepath.Join(t.TempDir(), "file")
	must.WriteFile(t, file, "")
	for want, change := range map[string]func(*config.Config){
		"cannot listen on " + busy.Addr().String() + ": address already in use: stop the program that uses it, or choose " +
			"another address with listen": func(cfg *config.Config) {
			cfg.Listen = busy.Addr().String()
		},
		"cannot listen on " + file: func(cfg *config.Config) { cfg.AdminSocket = file },
	} {
		s, cfg := simulated(t)
		change(cfg)
		srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
		must.OK(t, err)
		if err := srv.Start(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := net.Dial("tcp", srv.MetricsAddr().String()); err == nil {
			t.Error("the metrics listener is still open")
		}
	}
}
