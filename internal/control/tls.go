package control

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/wire"
)

// tlsTimeout bounds a TLS handshake and its counterpart at the end.
const tlsTimeout = 30 * time.Second

func (s *session) encrypted() bool {
	_, ok := s.conn.(*tls.Conn)
	return ok
}

// auth is AUTH (RFC 4217 4). What a client has sent in the clear behind it is
// dropped with the old reader, never run under TLS.
func (s *session) auth(mechanism string) {
	switch strings.ToUpper(mechanism) {
	case "TLS", "TLS-C", "SSL": // RFC 4217 17; SSL is what old devices call it
	default:
		s.say(504, i18n.ParameterNotImplemented, "AUTH")
		return
	}
	switch {
	case s.server.cfg.TLS == nil:
		s.say(431, i18n.TLSUnavailable)
	case s.encrypted():
		s.say(503, i18n.TLSActive)
	default:
		s.say(234, i18n.TLSStarting)
		s.logOut()
		if !s.startTLS(&recordConn{Conn: s.tcp}) {
			s.closing = true
			return
		}
		s.reader = wire.NewReader(s.conn)
	}
}

// startTLS makes the control connection one under TLS.
func (s *session) startTLS(below net.Conn) bool {
	conn := tls.Server(below, s.server.cfg.TLS)
	_ = s.tcp.SetDeadline(time.Now().Add(tlsTimeout))
	if err := conn.HandshakeContext(withHost(s.ctx, s.hostname)); err != nil {
		s.log.Info("TLS handshake failed", "err", err)
		if header, ok := errors.AsType[tls.RecordHeaderError](err); ok && header.Conn != nil {
			s.say(421, i18n.TLSFailed) // the client is in the clear still (RFC 4217 10.1)
		}
		return false
	}
	_ = s.tcp.SetDeadline(time.Time{})
	s.conn = conn
	s.takeServerName()
	return true
}

// takeServerName takes the name that a client has given to TLS (SNI) for HOST,
// if a tenant has that name.
func (s *session) takeServerName() {
	name := s.namedToTLS()
	if tenant, known := s.server.cfg.Backend.Host(name); known && s.hostname == "" {
		s.hostname = name
		s.setTenant(tenant)
	}
}

// hostOfHandshake is the key of a handshake's context under which the host is
// that HOST has chosen.
type hostOfHandshake struct{}

func withHost(ctx context.Context, host string) context.Context {
	return context.WithValue(ctx, hostOfHandshake{}, host)
}

// withHosts is a TLS configuration for sessions with HOST before the handshake
// (RFC 7151 4): the certificate is the host's also for a client that does not
// name it again, and to name another one ends the handshake.
func withHosts(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	configFor, certificate := cfg.GetConfigForClient, cfg.GetCertificate
	cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		host := hostOf(hello)
		if named, ok := parseHost(hello.ServerName); ok && host != "" && named != host {
			return nil, fmt.Errorf("the client named %s to HOST and %s to TLS", host, named)
		}
		if configFor != nil {
			if chosen, err := configFor(hello); chosen != nil || err != nil {
				return chosen, err
			}
		}
		return holdTickets(hello.Context(), cfg), nil // nil: cfg itself
	}
	if certificate != nil {
		cfg.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			named := *hello
			named.ServerName = cmp.Or(hello.ServerName, hostOf(hello))
			return certificate(&named)
		}
	}
	return cfg
}

func hostOf(hello *tls.ClientHelloInfo) string {
	host, _ := hello.Context().Value(hostOfHandshake{}).(string)
	return host
}

// stopTLS goes back to the clear (RFC 4217 13): both sides say close_notify,
// then the bytes that follow are commands again.
func (s *session) stopTLS(conn *tls.Conn) {
	_ = s.tcp.SetDeadline(time.Now().Add(tlsTimeout))
	if err := conn.CloseWrite(); err != nil {
		s.closing = true
		return
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		s.closing = true
		return
	}
	_ = s.tcp.SetDeadline(time.Time{})
	s.conn = s.tcp
	s.reader = wire.NewReader(s.conn)
}

// recordConn never reads beyond the TLS record that it is in, so that nothing
// which follows the last record is lost in a TLS buffer (RFC 8446 5.1).
type recordConn struct {
	net.Conn
	header []byte // read and not yet handed out
	left   int    // bytes of the record's body
}

const (
	recordHeader = 5
	recordLength = 3 // where the length is in the header
)

func (c *recordConn) Read(b []byte) (int, error) {
	if len(c.header) == 0 && c.left == 0 {
		header := make([]byte, recordHeader)
		if _, err := io.ReadFull(c.Conn, header); err != nil {
			return 0, err
		}
		c.header, c.left = header, int(binary.BigEndian.Uint16(header[recordLength:]))
	}
	if len(c.header) > 0 {
		n := copy(b, c.header)
		c.header = c.header[n:]
		return n, nil
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

// pbsz is PBSZ (RFC 4217 8): over TLS there is no buffer to agree on, but what
// does not fit in 32 bits is no size (RFC 2228 3).
func (s *session) pbsz(size string) {
	_, err := strconv.ParseUint(size, 10, 32)
	switch {
	case !s.encrypted():
		s.say(503, i18n.TLSFirst)
	case err != nil:
		s.syntaxError()
	default:
		s.data.sized = true
		s.send(wire.NewReply(200, "PBSZ=0"))
	}
}

// prot is PROT (RFC 4217 9).
func (s *session) prot(level string) {
	switch level = strings.ToUpper(level); {
	case !s.encrypted():
		s.say(503, i18n.TLSFirst)
	case !s.data.sized:
		s.say(503, i18n.ProtectionSizeFirst)
	case level == "P":
		s.data.private = true
		s.say(200, i18n.ProtectionPrivate)
	case level == "C" && s.server.cfg.TLSRequired:
		s.say(534, i18n.ProtectionRequired)
	case level == "C":
		s.data.private = false
		s.say(200, i18n.ProtectionClear)
	case level == "S" || level == "E":
		s.say(536, i18n.ProtectionUnsupported)
	default:
		s.say(504, i18n.ParameterNotImplemented, "PROT")
	}
}

// ccc is CCC: the control connection never goes back to the clear while
// somebody is logged in.
func (s *session) ccc(string) {
	if s.encrypted() {
		s.say(534, i18n.EncryptionStays)
	} else {
		s.say(533, i18n.TLSFirst)
	}
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
