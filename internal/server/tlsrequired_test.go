package server

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// The user decides whether TLS is required, then the tenant, then the network, then the server. The server asks no
// password in the clear of a user who must use TLS.
func TestTLSRequired(t *testing.T) {
	yes, no := true, false
	for name, tc := range map[string]struct {
		server, tenant, user *bool
		network              string
		want                 bool
	}{
		"server":                    {server: &yes, want: true},
		"not server":                {server: &no},
		"network":                   {server: &yes, network: "127.0.0.0/8"},
		"another network":           {server: &yes, network: "10.0.0.0/8", want: true},
		"tenant":                    {server: &no, tenant: &yes, want: true},
		"not tenant":                {server: &yes, tenant: &no},
		"tenant in the network":     {server: &yes, network: "127.0.0.0/8", tenant: &yes, want: true},
		"user":                      {server: &no, tenant: &no, user: &yes, want: true},
		"not user":                  {server: &yes, tenant: &yes, user: &no},
		"user in the network":       {server: &yes, network: "127.0.0.0/8", user: &yes, want: true},
		"user outside of networks":  {server: &yes, network: "10.0.0.0/8", user: &no},
		"user of a tenant that may": {server: &no, tenant: &no, user: &no},
	} {
		t.Run(name, func(t *testing.T) {
			s, cfg := simulated(t)
			dir := t.TempDir()
			cfg.TLS.CertFile, cfg.TLS.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
			certtest.Write(t, cfg.TLS.CertFile, cfg.TLS.KeyFile, &x509.Certificate{})
			cfg.TLS.Required = tc.server
			if tc.network != "" {
				cfg.TLS.OptionalNetworks = []value.Network{{Prefix: netip.MustParsePrefix(tc.network)}}
			}
			acme := cfg.Tenants["acme"]
			acme.TLS.Required = tc.tenant
			acme.Users["alice"].TLS.Required = tc.user
			srv := start(t, cfg, Options{AWS: s.AWSConfig()})
			address := srv.Addr().String()

			clear := ftptest.Dial(t, address)
			if tc.want {
				clear.Command(530, "USER alice")
				clear.Command(503, "PASS "+servicetest.Password)
			} else {
				clear.Login("alice", servicetest.Password)
				clear.Store("clear", "content")
			}

			private := ftptest.Dial(t, address)
			private.Command(234, "AUTH TLS")
			own := &tls.Config{InsecureSkipVerify: true}
			must.OK(t, private.StartTLS(own))
			private.Login("alice", servicetest.Password)
			private.Command(200, "PBSZ 0")
			if tc.want {
				private.Command(534, "PROT C")
				data := private.Data()
				private.Command(521, "STOR clear")
				data.Close()
			} else {
				private.Command(200, "PROT C")
				private.Store("clear", "content")
			}
			protect(private, own)
			private.Store("private", "content")
		})
	}
}

// HOST between USER and PASS chooses no tenant whose rule USER has not met.
func TestTLSRequiredAfterHost(t *testing.T) {
	yes, no := true, false
	s, cfg := simulated(t)
	dir := t.TempDir()
	cfg.TLS.CertFile, cfg.TLS.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	certtest.Write(t, cfg.TLS.CertFile, cfg.TLS.KeyFile, &x509.Certificate{})
	cfg.TLS.Required = &no
	cfg.Tenants["acme"].TLS.Required = &yes
	cfg.Tenants["umbrella"] = &config.Tenant{
		Bucket: s.Bucket(t), Hosts: []string{"ftp.umbrella.example"},
		Users: map[string]*config.User{"alice": {PasswordHash: servicetest.PasswordHash()}},
	}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	c := ftptest.Dial(t, srv.Addr().String())
	c.Command(220, "HOST ftp.acme.example")
	c.Command(530, "USER alice")
	c.Command(220, "HOST ftp.umbrella.example")
	c.Command(331, "USER alice")
	if reply, err := c.Send("HOST ftp.acme.example"); err != nil {
		t.Fatal(reply, err)
	}
	if reply, err := c.Send("PASS " + servicetest.Password); err != nil || reply[:3] == "230" {
		t.Errorf("PASS gets %q, %v", reply, err)
	}
}
