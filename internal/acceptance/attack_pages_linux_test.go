package acceptance_test

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// These are attacks of strangers on the sleep of operators, and on what they read.

// TestHangUpsPageNoOne: clients that hang up while PASS waits for their wrong passwords are no failure of the server.
func TestHangUpsPageNoOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	for range 6 { // the next attempt waits for eight seconds
		s.guess(t, "alice@acme", "wrong")
	}
	const hangUps = 5
	for range hangUps {
		c := ftptest.Dial(t, s.address)
		c.Command(331, "USER alice@acme")
		if _, err := io.WriteString(c, "PASS wrong\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	s.awaitMetric(t, `babelftp_logins_total{result="abandoned",tenant="acme"}`, hangUps)
	for _, tenant := range []string{"", acme} {
		if n := s.metric(t, `babelftp_logins_total{result="failed",tenant="`+tenant+`"}`); n > 0 {
			t.Errorf("%v logins have failed by an error", n)
		}
	}
	if strings.Contains(s.server.stderr.String(), "level=ERROR") {
		t.Error("the log has an error")
	}
}

// TestRefusedConnectionsAreCounted: a flood of connections that are refused has few lines in the audit log, which
// have the number of all.
func TestRefusedConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	audit := filepath.Join(t.TempDir(), "audit.log")
	s := newSiteWithLimits(t, `deny: ["127.0.0.9/32"]`, "audit: {file: "+strconv.Quote(audit)+"}")
	const connections = 300
	for range connections {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}).Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, conn) // 421
		_ = conn.Close()
	}
	c := ftptest.Dial(t, s.address)
	c.Login("alice@acme", password)
	c.Command(221, "QUIT")
	s.server.signal(syscall.SIGTERM)
	s.server.wait()
	text, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	lines, refused, logins := 0, 0, 0
	for line := range strings.Lines(string(text)) {
		var fields struct {
			Event string
			More  int
		}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		switch fields.Event {
		case "refused":
			lines++
			if refused += fields.More; fields.More == 0 {
				refused++
			}
		case "login":
			logins++
		}
	}
	if lines > 20 || refused != connections || logins != 1 { // two lines a minute
		t.Errorf("%d lines have %d refused connections of %d, and %d a login", lines, refused, connections, logins)
	}
}

// TestPortScan connects to all passive ports of replicas, for which no session waits. Replicas pass that on in vain,
// but no session misses its client.
func TestPortScan(t *testing.T) {
	t.Parallel()
	c := newClusterSite(t, s3test.Start(t, "minio"), 0)
	host, text, err := net.SplitHostPort(c.replicas[0].address)
	if err != nil {
		t.Fatal(err)
	}
	control, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	for port := range clusterReplicas * portsOfReplica {
		conn, err := net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(control+1+port)))
		if err != nil {
			continue // the replica opens its own ports for sessions only
		}
		_, _ = io.Copy(io.Discard, conn) // until it is closed
		_ = conn.Close()
	}
	waitUntil(t, func() bool {
		return c.sum(`babelftp_relays_total{result="unmatched"}`) > 0
	}, func() { t.Error("no connection is passed on in vain") })
	if n := c.sum("babelftp_data_connections_missed_total"); n > 0 {
		t.Errorf("%v sessions miss their clients, and BabelftpRelaysFail counts them", n)
	}
}
