package server

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// The network decides before the server setting whether TLS is required. If a client must use TLS, the server does not
// ask for its password in plain text. Package account tests that the tenant and the user come first.
func TestTLSRequired(t *testing.T) {
	yes, no := true, false
	for name, tc := range map[string]struct {
		server   *bool
		optional []value.Network
		want     bool
	}{
		"server":          {&yes, nil, true},
		"not-server":      {&no, nil, false},
		"network":         {&yes, networks(t, "127.0.0.0/8"), false},
		"another-network": {&yes, networks(t, "10.0.0.0/8"), true},
	} {
		t.Run(name, func(t *testing.T) {
			s, cfg := simulated(t)
			dir := t.TempDir()
			cfg.TLS = config.TLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"),
				Required: tc.server, OptionalNetworks: tc.optional}
			must.WriteCertificate(t, cfg.TLS.CertFile, cfg.TLS.KeyFile, &x509.Certificate{})
			c := ftptest.Dial(t, start(t, cfg, Options{AWS: s.AWSConfig()}).Addr().String())
			if tc.want {
				c.Command(530, "USER alice")
				c.Command(503, "PASS "+servicetest.Password)
			} else {
				c.Login("alice", servicetest.Password)
			}
			c.Command(234, "AUTH TLS")
			must.OK(t, c.StartTLS(&tls.Config{InsecureSkipVerify: true}))
			c.Login("alice", servicetest.Password)
			c.Command(200, "PBSZ 0")
			c.Command(map[bool]int{true: 534, false: 200}[tc.want], "PROT C")
		})
	}
}
