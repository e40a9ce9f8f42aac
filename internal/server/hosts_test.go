package server

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// TestHostChoosesTenant checks that the host of a tenant selects the tenant, whatever the user name contains, and that
// the log mentions it if the tenant has no such user.
func TestHostChoosesTenant(t *testing.T) {
	const (
		byTLS   = `unknown user: TLS (SNI) named the host ftp.acme.example, which chose the tenant \"acme\"`
		byHOST  = `unknown user: HOST named the host ftp.acme.example, which chose the tenant \"acme\"`
		named   = `, and the name ends in @globex: let the client connect to a host of the tenant \"globex\"`
		several = `unknown user: several tenants have a user with this name: log in as user@tenant`
		unsaid  = `: correct the name, or let the client connect to a host of the tenant of the user`
	)
	for _, test := range []struct {
		name, sni, host, user string
		code                  int
		log                   string // for a refused login
	}{
		{"no-host", "", "", "bob@globex", 230, ""},
		{"name-of-both", "", "", "alice", 530, several},
		{"name-of-none", "", "", "carol", 530, `"unknown user: login refused"`},
		{"own-tenant", "ftp.acme.example", "", "alice@acme", 230, ""},
		{"plain-name", "ftp.acme.example", "", "alice", 230, ""},
		{"other-tenant", "ftp.acme.example", "", "bob@globex", 530, byTLS + named},
		{"other-tenant-by-HOST", "", "ftp.acme.example", "bob@globex", 530, byHOST + named},
		{"same-name-in-other-tenant", "ftp.acme.example", "", "alice@globex", 530, byTLS + named},
		{"plain-name-of-other-tenant", "ftp.acme.example", "", "bob", 530, byTLS + unsaid},
		{"address-that-is-no-tenant", "ftp.acme.example", "", "bob@mail.example", 530, byTLS + unsaid},
		{"host-of-no-tenant", "ftp.example", "", "bob@globex", 230, ""},
		{"wrong-password", "ftp.acme.example", "", "alice", 530, `user \"alice\" of tenant \"acme\": login refused`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, cfg := simulated(t)
			acme := cfg.Tenants["acme"]
			acme.Hosts = []string{"ftp.acme.example"}
			globex := *servicetest.NewConfig(t, s).Tenants["acme"]
			globex.Hosts = []string{"ftp.globex.example"}
			globex.Users["bob"] = globex.Users["alice"]
			cfg.Tenants["globex"] = &globex
			log := &servicetest.Log{}
			certificate, _ := must.CertificatePair(t, &x509.Certificate{})
			srv := start(t, cfg, Options{AWS: s.AWSConfig(), Certificate: &certificate, Logger: log.Logger()})
			c := ftptest.Dial(t, srv.Addr().String())
			if test.sni != "" {
				c.Command(234, "AUTH TLS")
				must.OK(t, c.StartTLS(&tls.Config{ServerName: test.sni, InsecureSkipVerify: true}))
			}
			if test.host != "" {
				c.Command(220, "HOST "+test.host)
			}
			c.Command(331, "USER "+test.user)
			password := servicetest.Password
			if test.name == "wrong-password" {
				password = "wrong"
			}
			c.Command(test.code, "PASS "+password)
			refused := strings.Contains(log.String(), "login refused")
			if refused != (test.code == 530) || !strings.Contains(log.String(), test.log) {
				t.Errorf("the log lacks %s:\n%s", test.log, log)
			}
		})
	}
}
