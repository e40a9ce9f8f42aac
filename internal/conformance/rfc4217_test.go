package conformance_test

import (
	"crypto/tls"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// secure starts TLS on a data connection.
func (s *site) secure(conn net.Conn) *tls.Conn {
	cfg := s.tls.Clone()
	cfg.ServerName = "ftp.acme.example"
	return tls.Client(conn, cfg)
}

// RFC 4217 4, 6 and 17: the parameters of AUTH, and their FEAT lines.
func TestAUTH(t *testing.T) {
	s := newSite(t, settings{})
	for _, line := range []string{"AUTH TLS", "auth tls", "AUTH TLS-C"} {
		s.connect(t).want("234 ", line)
	}
	c := s.connect(t)
	c.want("504 ", "AUTH GSSAPI")
	c.want("501 ", "AUTH")
	for _, feature := range []string{"AUTH TLS", "PBSZ", "PROT"} {
		if !slices.Contains(c.features(), feature) {
			t.Errorf("FEAT lacks %s", feature)
		}
	}
	c.startTLS(s, "")
	c.want("503 ", "AUTH TLS")
}

// RFC 4217 4: AUTH resets the user and the transfer parameters.
func TestAUTHResetsTheSession(t *testing.T) {
	s := newSite(t, settings{})
	c := s.login(t)
	c.Store("f", "a\nb")
	c.must("257", "MKD d")
	c.must("250", "CWD d")
	c.must("200", "TYPE A")
	c.must("229", "EPSV")
	c.startTLS(s, "ftp.acme.example")
	c.want("530 ", "PWD")
	c.login()
	c.want(`257 "/" `, "PWD")
	c.want("213 3", "SIZE f") // TYPE A was reset
	c.want("425 ", "NLST")
}

// RFC 4217 9 and RFC 2228 3: PBSZ follows the handshake, PROT follows PBSZ.
func TestSecurityCommandsComeInOrder(t *testing.T) {
	s := newSite(t, settings{})
	c := s.connect(t)
	c.want("503 ", "PBSZ 0")
	c.want("503 ", "PROT P")
	c.want("533 ", "CCC")
	c.startTLS(s, "")
	c.want("503 ", "PROT P")
	c.want("501 ", "PBSZ x")
	c.want("501 ", "PBSZ 4294967296")
	c.want("200 PBSZ=0", "PBSZ 4096")
	c.want("200 ", "PBSZ 0")
	c.want("536 ", "PROT S")
	c.want("536 ", "PROT E")
	c.want("504 ", "PROT X")
	c.want("200 ", "PROT C")
	c.want("200 ", "PROT P")
	c.want("534 ", "CCC")
	c.want("200 ", "NOOP")
}

// RFC 4217 9: data connections are unencrypted until PROT P, and again after PROT C and REIN.
func TestPROT(t *testing.T) {
	s := newSite(t, settings{})
	c := s.connect(t)
	tcp := c.Conn.Conn
	c.startTLS(s, "ftp.acme.example")
	c.login()
	c.Store("f", "clear")
	c.must("200", "PBSZ 0")
	c.Want("clear", "RETR f")
	c.must("200", "PROT P")
	conn := s.secure(c.Data())
	c.must("150", "RETR f")
	if got, err := io.ReadAll(conn); string(got) != "clear" || err != nil {
		t.Errorf("with PROT P: got %q, %v", got, err)
	}
	c.wantReply("226 ")
	c.must("200", "PROT C")
	c.Want("clear", "RETR f")
	c.must("200", "PROT P")
	c.must("220", "REIN")
	must.OK(t, c.Conn.Conn.(*tls.Conn).CloseWrite())
	if _, err := c.In.ReadByte(); err != io.EOF {
		t.Fatalf("after REIN: got error %v, want the end of TLS", err)
	}
	_ = tcp.SetDeadline(time.Time{}) // CloseWrite set a deadline
	c.Conn.Conn = tcp
	c.In.Reset(tcp)
	c.login()
	c.Want("clear", "RETR f")
	c.want("503 ", "PROT P")
}

// RFC 4217 10.1: a failed handshake.
func TestTLSThatFails(t *testing.T) {
	c := newSite(t, settings{}).connect(t)
	c.must("234", "AUTH TLS")
	c.write("USER alice\r\n")
	c.wantReply("421 ")
}
