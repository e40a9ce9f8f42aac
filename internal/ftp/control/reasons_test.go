package control_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Clients that cannot reach their passive port are the most common problem of FTP. The log has the address sent to
// the client, even if the client sends no transfer command, like ftplib of Python.
func TestLogOfMissingDataConnections(t *testing.T) {
	log := &servicetest.Log{}
	s := newSite(t, func(cfg *control.Config) {
		cfg.Logger = log.Logger()
		cfg.Data.OpenTimeout = 200 * time.Millisecond
	})
	c := s.login()
	want := func(line, address string) {
		t.Helper()
		_, port, _ := net.SplitHostPort(address)
		for _, part := range []string{" data_address=" + address + " ",
			"the client did not connect to port " + port + " within "} {
			if !strings.Contains(line, part) {
				t.Errorf("%q lacks %q", line, part)
			}
		}
	}
	for _, then := range []string{"PORT 127,0,0,1,200,1", "ABOR", "QUIT"} {
		_, port, _ := net.SplitHostPort(c.epsvAddress())
		c.do(then, "2")
		want(log.Next("no data connection came"), ":"+port)
	}
	c = s.login()
	c.do("LANG en", "200 ")
	_, numbers, _ := strings.Cut(strings.TrimSuffix(c.do("PASV", "227 "), ")"), "(")
	address, err := dataconn.ParsePort(numbers)
	must.OK(t, err)
	c.do("LIST", "150 ")
	c.expect(fmt.Sprintf(
		"425 No data connection arrived on port %d; a firewall may be blocking it. Please ask the administrator.", address.Port()))
	want(log.Next("transfer"), address.String())
	c.do("PORT 127,0,0,1,4,0", "200 ") // no client listens there
	c.do("LIST", "425 The server cannot open a data connection to your device. Please use passive mode.")
	if line := log.Next("transfer"); strings.Contains(line, "data_address") ||
		!strings.Contains(line, `connection="dial tcp 127.0.0.1`) {
		t.Errorf("active transfer: got %q", line)
	}
}

// A client that sends an unsupported parameter learns which ones are supported.
func TestParametersOfTransfers(t *testing.T) {
	c := newSite(t, nil).login()
	c.do("LANG en", "200 ")
	c.do("PORT 127,0,0,1,0,21", "504 Data connections to ports below 1024 are not allowed.")
	c.do("RANG 1 2", "350 ")
	c.do("EPSV", "229 ")
	c.do("STOR f", "504 RANG applies to downloads only.")
	c.Store("f", "content") // the range was for one transfer
}

// An open data connection is not logged as missing, even if no transfer uses it.
func TestLogOfUnusedDataConnections(t *testing.T) {
	log := &servicetest.Log{}
	var ports *dataconn.Ports
	s := newSite(t, func(cfg *control.Config) {
		cfg.Logger = log.Logger()
		ports = cfg.Ports
	})
	c := s.login()
	c.Store("f", "content")
	conn := c.Data()
	// the client may be connected before the server has accepted the connection
	for end := time.Now().Add(waitTimeout); ports.InUse() > 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the server did not accept the data connection")
		}
	}
	c.do("ABOR", "226 ")
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("got %d bytes on the data connection", n)
	}
	c.do("QUIT", "221 ")
	c.WantClosed()
	for _, line := range log.Take() {
		if strings.Contains(line, "no data connection came") {
			t.Errorf("unexpected log %q", line)
		}
	}
}

// A client that does not trust the certificate often just disconnects, so the log has a hint. The log also has
// clients that were refused because they did not start TLS, and uploads that end without close_notify.
func TestLogOfTLS(t *testing.T) {
	log := &servicetest.Log{}
	s := newSite(t, func(cfg *control.Config) {
		cfg.Logger = log.Logger()
		cfg.TLSRequired = true
	})
	c := s.connect()
	c.do("USER demo", "530 ")
	if line := log.Next("login refused"); !strings.Contains(line, "TLS is required (tls.required)") {
		t.Errorf("unexpected log without TLS: %q", line)
	}
	c.startTLS()
	c.do("FEAT", "211-")
	c.Close()
	if line := log.Next("client disconnected after the TLS handshake"); !strings.Contains(
		line, `hint="the client may not trust the certificate`) {
		t.Errorf("unexpected log after the handshake: %q", line)
	}
	c = s.connect()
	c.startTLS()
	c.do("QUIT", "221 ")
	c = s.loginTLS()
	c.TLS = nil
	raw := c.dialData(c.epsvAddress())
	conn := c.secure(raw)
	c.do("STOR f", "150 ")
	_, _ = io.WriteString(conn, "half")
	raw.Close()
	c.expect("426 ")
	for line := ""; !strings.Contains(line, "msg=transfer"); {
		line = log.Next("")
		if strings.Contains(line, "client left") {
			t.Errorf("log after QUIT: %q", line)
		}
		if strings.Contains(line, "msg=transfer") &&
			!strings.Contains(line, `connection="the data connection was lost: it ended without close_notify of TLS`) {
			t.Errorf("log at the end of the upload: %q", line)
		}
	}
	s.wantEmpty()
}
