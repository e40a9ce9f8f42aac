package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"
)

// TLSTimeout bounds the TLS handshake and the exchange of close_notify.
const TLSTimeout = 30 * time.Second

// Encrypted reports whether the connection uses TLS.
func (c *Conn) Encrypted() bool { return c.tls() != nil }

func (c *Conn) tls() *tls.Conn {
	conn, _ := c.stream.(*tls.Conn)
	return conn
}

// Encryption returns the TLS version and the IANA name of the cipher suite. Both are empty without TLS.
func (c *Conn) Encryption() (version, cipher string) {
	conn := c.tls()
	if conn == nil {
		return "", ""
	}
	state := conn.ConnectionState()
	return tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite)
}

// ServerName returns the host that the client sent with SNI (RFC 6066, 3), or an empty string.
func (c *Conn) ServerName() string {
	if conn := c.tls(); conn != nil {
		return conn.ConnectionState().ServerName
	}
	return ""
}

// Certificates returns the certificates that the client sent, beginning with the client certificate. The handshake
// only proves that the client has its private key.
func (c *Conn) Certificates() []*x509.Certificate {
	if conn := c.tls(); conn != nil {
		return conn.ConnectionState().PeerCertificates
	}
	return nil
}

// ErrNotTLS reports a client that sent something other than a TLS record. Both sides can still communicate without
// TLS (RFC 4217, 10.1).
var ErrNotTLS = errors.New("not a TLS record")

// StartImplicitTLS starts TLS at the beginning of the connection.
func (c *Conn) StartImplicitTLS(ctx context.Context, cfg *tls.Config) error {
	return c.startTLS(ctx, cfg, c.tcp)
}

// StartTLS starts TLS after AUTH (RFC 4217, 4). Data that the client sent in the clear after AUTH is dropped with
// the old reader and never interpreted under TLS.
func (c *Conn) StartTLS(ctx context.Context, cfg *tls.Config) error {
	return c.startTLS(ctx, cfg, &recordConn{Conn: c.tcp})
}

func (c *Conn) startTLS(ctx context.Context, cfg *tls.Config, below net.Conn) error {
	conn := tls.Server(below, cfg)
	_ = c.tcp.SetDeadline(time.Now().Add(TLSTimeout))
	if err := conn.HandshakeContext(ctx); err != nil {
		if header, ok := errors.AsType[tls.RecordHeaderError](err); ok && header.Conn != nil {
			err = errors.Join(ErrNotTLS, err)
		}
		return err
	}
	_ = c.tcp.SetDeadline(time.Time{})
	c.stream, c.reader = conn, NewReader(conn)
	return nil
}

// StopTLS returns to plain text (RFC 4217, 13): both sides send close_notify, and the following bytes are
// commands.
func (c *Conn) StopTLS() error {
	_ = c.tcp.SetDeadline(time.Now().Add(TLSTimeout))
	conn := c.tls()
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		return err
	}
	_ = c.tcp.SetDeadline(time.Time{})
	c.stream, c.reader = c.tcp, NewReader(c.tcp)
	return nil
}

// recordConn never reads past the current TLS record (RFC 8446, 5.1), so that bytes after the last record are not
// lost in a buffer of crypto/tls.
type recordConn struct {
	net.Conn
	header []byte // read but not returned yet
	left   int    // remaining bytes of the record
}

// Layout of the header of a TLS record (RFC 8446, 5.1), in bytes.
const (
	RecordHeader = 5
	RecordLength = 3 // offset of the length
)

func (c *recordConn) Read(b []byte) (int, error) {
	if len(c.header) == 0 && c.left == 0 {
		header := make([]byte, RecordHeader)
		if _, err := io.ReadFull(c.Conn, header); err != nil {
			return 0, err
		}
		c.header, c.left = header, int(binary.BigEndian.Uint16(header[RecordLength:]))
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
