package server

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
)

// passivePortRange returns a range of n free ports, which no other test uses.
func passivePortRange(t *testing.T, n int) netaddr.PortRange {
	t.Helper()
	first := ftptest.FreePorts(t, n, "127.0.0.1")
	return netaddr.PortRange{First: first, Last: first + uint16(n) - 1}
}

// noPort is the reply in French.
const noPort = "Aucun port n’est libre pour la connexion de données. Veuillez réessayer."

// A client gets 425 if no port is free. It gets a port after a connection to another port ended, after a second EPSV
// on that session, and after the end of a session.
func TestPassivePortLimit(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Tenants["acme"].DefaultLanguage = language.French
	cfg.Passive.Ports = passivePortRange(t, 1)
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	first, second := session(t, srv, "alice"), session(t, srv, "alice")
	first.Command(229, "EPSV")
	first.Command(229, "EPSV")
	second.WantReply(425, noPort, "EPSV")
	conn := first.Data()
	defer conn.Close()
	// Wait until the server has accepted the connection.
	for metric := ""; !strings.Contains(metric, "babelftp_passive_ports 0\n"); {
		_, metric = get(t, srv, "/metrics")
	}
	second.Command(227, "PASV")
	first.Command(425, "EPSV")
	second.Command(221, "QUIT")
	second.WantClosed()
	first.Store("file", "some data")
	wantMetrics(t, srv, `babelftp_refusals_total{limit="passive.ports",tenant=""} 2`)
}

// A client that never connects to its passive port transfers no bytes, so stall_timeout limits the wait.
func TestPassivePortUntilStallTimeout(t *testing.T) {
	s, cfg := simulated(t)
	cfg.DataTimeout, cfg.StallTimeout = time.Hour, 50*time.Millisecond
	c := session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "alice")
	c.Command(229, "EPSV")
	c.Command(150, "NLST")
	c.Reply(425)
}
