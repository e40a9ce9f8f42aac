package certs

import (
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Certificates are obtained for added hosts, and no longer renewed for removed hosts.
func TestSetHosts(t *testing.T) {
	a := servicetest.StartAuthority(t, time.Hour)
	cfg := configOf(t, a, "ftp.acme.example")
	cfg.HTTPListen = a.HTTPAddress
	m, _ := start(t, cfg)
	await(t, m, a, "ftp.acme.example", nil)
	m.SetHosts([]string{"ftp.umbrella.example"})
	await(t, m, a, "ftp.umbrella.example", nil)
	if m.Certificate("ftp.acme.example") != nil || len(m.Hosts()) != 1 {
		t.Errorf("the removed host has a certificate, and the hosts are %q", m.Hosts())
	}
}
