package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// balancer is the address of the trusted proxy.
const balancer = "127.0.0.2"

// behindBalancer starts a server that trusts the PROXY headers of balancer.
func behindBalancer(t *testing.T, change func(*config.Config), opts Options) *Server {
	t.Helper()
	s, cfg := simulated(t)
	cfg.ProxyProtocol.Trusted = []value.Network{{Prefix: netip.MustParsePrefix(balancer + "/32")}}
	if change != nil {
		change(cfg)
	}
	opts.AWS = s.AWSConfig()
	return start(t, cfg, opts)
}

// dial connects from an address, and sends a header.
func dial(t *testing.T, from string, to net.Addr, header string) net.Conn {
	t.Helper()
	conn := ftptest.DialFrom(t, from, to.String())
	must.Write(t, conn, header)
	return conn
}

// behind returns a client behind the balancer, which sends a header for it.
func behind(t *testing.T, srv *Server, header string, code int) *ftptest.Client {
	t.Helper()
	c := ftptest.New(t, dial(t, balancer, srv.Addr(), header))
	c.Reply(code)
	return c
}

// transferBehind transfers over a data connection that the balancer forwards with a header.
func transferBehind(t *testing.T, c *ftptest.Client, passive, header, line, content string) string {
	t.Helper()
	reply, err := c.Send(passive)
	must.OK(t, err)
	port := 0
	if _, text, found := strings.Cut(reply, "(|||"); found {
		_, err = fmt.Sscanf(text, "%d", &port)
	} else {
		_, text, _ = strings.Cut(reply, "(192,0,2,1,") // address that the client connected to
		var high, low int
		_, err = fmt.Sscanf(text, "%d,%d", &high, &low)
		port = high<<8 | low
	}
	if err != nil {
		t.Fatalf("%s: %q", passive, reply)
	}
	conn := dial(t, balancer, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, header)
	c.Command(150, line)
	if content != "" {
		_, err = io.WriteString(conn, content)
		_ = conn.Close()
	} else {
		var back []byte
		back, err = io.ReadAll(conn)
		content = string(back)
	}
	if err != nil {
		t.Error(err)
	}
	c.Reply(226)
	return content
}

const (
	header4 = "PROXY TCP4 203.0.113.7 192.0.2.1 40000 21\r\n"
	header6 = "PROXY TCP6 2001:db8::7 2001:db8::1 40000 21\r\n"
	// local is the version 2 header for a connection of the load balancer itself.
	local = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
	// header4v2 is header4 in version 2.
	header4v2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x07\xc0\x00\x02\x01\x9c\x40\x00\x15"
)

// A client behind a balancer can transfer over IPv4 and IPv6, with PASV and EPSV, and with headers of both versions.
// PASV shows the address that the client connected to.
func TestProxyProtocol(t *testing.T) {
	srv := behindBalancer(t, nil, Options{})
	for name, tc := range map[string]struct{ header, passive string }{
		"v1-pasv": {header4, "PASV"}, "v1-epsv": {header4, "EPSV 1"}, "v1-ipv6": {header6, "EPSV 2"},
		"v2": {header4v2, "PASV"},
	} {
		t.Run(name, func(t *testing.T) {
			c := behind(t, srv, tc.header, 220)
			c.Login("alice", servicetest.Password)
			c.Command(200, "TYPE I")
			content := strings.Repeat(name, 1000)
			transferBehind(t, c, tc.passive, tc.header, "STOR "+name, content)
			if back := transferBehind(t, c, tc.passive, tc.header, "RETR "+name, ""); back != content {
				t.Errorf("RETR: got %d bytes, want %d", len(back), len(content))
			}
		})
	}
	c := behind(t, srv, header6, 220)
	c.Login("alice", servicetest.Password)
	c.Command(425, "PASV") // PASV only supports IPv4
	for _, line := range []string{"EPSV 1", "EPSV 3", "EPRT |1|203.0.113.7|2000|", "EPRT |3|x|1|"} {
		if text := c.Command(522, line); !strings.HasSuffix(text, " (2)") {
			t.Errorf("%s: got %q, want the protocol of IPv6", line, text)
		}
	}
	wantMetrics(t, srv, "babelftp_proxy_protocol_refused_total 0")
}

// Limits and logs use the address in the header. Connections of the balancer itself do not count as clients.
func TestProxyProtocolLimits(t *testing.T) {
	log := &servicetest.Log{}
	srv := behindBalancer(t, func(cfg *config.Config) {
		cfg.Limits.Address.Sessions = 2
		cfg.Limits.Server.Deny = []value.Network{{Prefix: netip.MustParsePrefix("198.51.100.0/24")}}
	}, Options{Logger: log.Logger()})
	behind(t, srv, "PROXY TCP4 198.51.100.7 192.0.2.1 40000 21\r\n", 421)
	for range 2 {
		behind(t, srv, header4, 220)
	}
	behind(t, srv, header4v2, 421)
	behind(t, srv, header6, 220)
	behind(t, srv, "PROXY UNKNOWN\r\n", 220)
	behind(t, srv, local, 220)
	behind(t, srv, local, 421) // two sessions at the balancer's address
	if !log.Has("198.51.100.7") {
		t.Errorf("the log lacks the client: %s", log)
	}
}

// From a trusted network, a connection without a header gets no session. From another network, a header
// is an unknown command that ends the session.
func TestProxyProtocolRequired(t *testing.T) {
	srv := behindBalancer(t, nil, Options{})
	ftptest.New(t, dial(t, balancer, srv.Addr(), "USER alice\r\n")).WantClosed()
	wantMetrics(t, srv, "babelftp_proxy_protocol_refused_total 1")
	c, _ := dialFrom(t, srv, "127.0.0.1", 220)
	c.Command(500, strings.TrimSpace(header4))
	c.Reply(421)
	c.WantClosed()
}

// A data connection is only accepted if its header names the client and comes from the balancer.
func TestProxyProtocolDataConnection(t *testing.T) {
	srv := behindBalancer(t, func(cfg *config.Config) { cfg.Passive.Ports = passivePortRange(t, 1) }, Options{})
	port := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(srv.active.Load().cfg.Passive.Ports.First)}
	c := behind(t, srv, header4, 220)
	c.Login("alice", servicetest.Password)
	c.Command(227, "PASV")
	for name, tc := range map[string]struct{ from, header string }{
		"other-client":   {balancer, "PROXY TCP4 203.0.113.8 192.0.2.1 40000 30000\r\n"},
		"no-header":      {balancer, "the data of a file"},
		"balancer":       {balancer, local},
		"other-network":  {"127.0.0.1", header4},
		"other-network2": {"127.0.0.3", header4v2},
	} {
		t.Run(name, func(t *testing.T) {
			if n, err := dial(t, tc.from, port, tc.header).Read(make([]byte, 1)); err == nil {
				t.Errorf("the client received %d bytes", n)
			}
		})
	}
	conn := dial(t, balancer, port, header4) // the session is still waiting
	c.Command(150, "STOR file")
	_, _ = io.WriteString(conn, "right")
	_ = conn.Close()
	c.Reply(226)
}

// The header comes before implicit TLS, and before TLS on data connections.
func TestProxyProtocolImplicitTLS(t *testing.T) {
	dir := t.TempDir()
	files := config.TLS{ImplicitListen: "127.0.0.1:0", CertFile: dir + "/server.crt", KeyFile: dir + "/server.key"}
	must.WriteCertificate(t, files.CertFile, files.KeyFile, &x509.Certificate{})
	srv := behindBalancer(t, func(cfg *config.Config) { cfg.TLS = files }, Options{})
	client := &tls.Config{InsecureSkipVerify: true} // other tests check the certificate
	c := ftptest.New(t, tls.Client(dial(t, balancer, srv.ImplicitAddr(), header4), client))
	c.Reply(220)
	c.Login("alice", servicetest.Password)
	address, err := c.Passive()
	must.OK(t, err)
	to, err := net.ResolveTCPAddr("tcp", address)
	must.OK(t, err)
	conn := tls.Client(dial(t, balancer, to, header4), client)
	c.Command(150, "STOR file")
	must.Write(t, conn, "under TLS")
	_ = conn.Close()
	c.Reply(226)
}

// An active data connection goes to the client address from the header, from an address of this machine.
func TestProxyProtocolActive(t *testing.T) {
	srv := behindBalancer(t, nil, Options{})
	l, err := net.Listen("tcp", "127.0.0.5:0")
	must.OK(t, err)
	defer l.Close()
	c := behind(t, srv, "PROXY TCP4 127.0.0.5 192.0.2.1 40000 21\r\n", 220)
	c.Login("alice", servicetest.Password)
	at := l.Addr().(*net.TCPAddr).AddrPort()
	c.Command(501, "PORT "+dataconn.FormatPort(netip.MustParseAddr(balancer), at.Port()))
	c.Command(200, "PORT "+dataconn.FormatPort(at.Addr(), at.Port()))
	if _, err := fmt.Fprintf(c, "NLST\r\n"); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	must.OK(t, err)
	defer conn.Close()
	c.Reply(150)
	if _, err := io.ReadAll(conn); err != nil {
		t.Error(err)
	}
	c.Reply(226)
}

// A client that starts implicit TLS on the port for explicit TLS is disconnected, and so is one with an untrusted
// header. Each writes one log line per minute and address.
func TestForeignProtocolsInTheLog(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	log := &servicetest.Log{}
	srv := start(t, servicetest.NewConfig(t, s), Options{AWS: s.AWSConfig(), Logger: log.Logger()})
	for range 2 {
		conn, err := net.Dial("tcp", srv.Addr().String())
		must.OK(t, err)
		if err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context()); err == nil {
			t.Error("a TLS handshake succeeded on the port for explicit TLS")
		}
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Logf("the connection ends with %v", err) // a reset if bytes were left
		}
		_ = conn.Close()
	}
	for _, header := range []string{"PROXY TCP4 192.0.2.7 203.0.113.1 1024 21\r\nQUIT\r\n",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xcb\x00\x71\x01\x04\x00\x00\x15"} {
		conn, err := net.Dial("tcp", srv.Addr().String())
		must.OK(t, err)
		must.Write(t, conn, header)
		if replies, _ := io.ReadAll(conn); !strings.Contains(string(replies), "\r\n500 ") ||
			!strings.Contains(string(replies), "\r\n421 ") {
			t.Errorf("replies to %q: got %q", header, replies)
		}
		_ = conn.Close()
	}
	must.OK(t, srv.Shutdown(t.Context()))
	lines := map[string]int{}
	for _, line := range log.Take() {
		for _, message := range []string{"protocol=TLS", "protocol=PROXY"} {
			if strings.Contains(line, message) && strings.Contains(line, "remote=127.0.0.1:") {
				lines[message]++
			}
		}
	}
	for message, n := range lines {
		if n != 1 {
			t.Errorf("got %d log lines with %s", n, message)
		}
	}
	if len(lines) != 2 {
		t.Errorf("unexpected log %v", lines)
	}
}
