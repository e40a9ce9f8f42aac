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

// TLSTimeout bounds a TLS handshake and its counterpart at the end.
const TLSTimeout = 30 * time.Second

// Encrypted says whether the connection is under TLS.
func (c *Conn) Encrypted() bool { return c.tls() != nil }

func (c *Conn) tls() *tls.Conn {
	conn, _ := c.stream.(*tls.Conn)
	return conn
}

// Encryption is the version of TLS, and the cipher suite by the name that IANA has for it. Both are empty in the clear.
func (c *Conn) Encryption() (version, cipher string) {
	conn := c.tls()
	if conn == nil {
		return "", ""
	}
	state := conn.ConnectionState()
	return tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite)
}

// ServerName is the host that the client has named to TLS (SNI, RFC 6066 3),
// empty where there is none.
func (c *Conn) ServerName() string {
	if conn := c.tls(); conn != nil {
		return conn.ConnectionState().ServerName
	}
	return ""
}

// Certificates are what the client has shown to TLS, its own first. TLS has proved
// that the client has its key, and no more.
func (c *Conn) Certificates() []*x509.Certificate {
	if conn := c.tls(); conn != nil {
		return conn.ConnectionState().PeerCertificates
	}
	return nil
}

// ErrNotTLS reports a client that has sent something else than a TLS record. It
// is in the clear still, and so is the connection (RFC 4217 10.1).
var ErrNotTLS = errors.New("no TLS record")

// StartImplicitTLS begins TLS with the connection.
func (c *Conn) StartImplicitTLS(ctx context.Context, cfg *tls.Config) error {
	return c.startTLS(ctx, cfg, c.tcp)
}

// StartTLS begins TLS after AUTH (RFC 4217 4). What the client has sent in the
// clear after it is dropped with the old reader, never read under TLS.
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

// StopTLS goes back to the clear (RFC 4217 13): both sides say close_notify,
// then the bytes that follow are commands again.
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

// recordConn never reads beyond the current TLS record (RFC 8446 5.1). So bytes
// after the last record are not lost in a buffer of TLS.
type recordConn struct {
	net.Conn
	header []byte // read and not yet handed out
	left   int    // bytes of the record's body
}

// The header of a TLS record (RFC 8446 5.1), in bytes.
const (
	RecordHeader = 5
	RecordLength = 3 // where the length is in the header
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
