// Package ftpclient is the control connection of an FTP client (RFC 959, RFC 4217).
//
// It sends commands, reads replies and starts TLS. It does not decide anything: callers judge the replies, and open
// their own data connections. It does not trust the server. The number of bytes that it reads is limited, and it drops
// what the server sends in the clear before a TLS handshake.
package ftpclient

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/textproto"
)

// maxReplies limits the bytes of all replies in the clear, and of all replies under TLS, to room for thousands of them.
const maxReplies = 1 << 20

// A Conn is a control connection. Replies have no deadline unless the caller sets one.
type Conn struct {
	net.Conn
	in   *textproto.Reader
	stop func() bool
}

// New returns a client for a connection. The connection is closed when ctx ends or the caller closes it.
func New(ctx context.Context, conn net.Conn) *Conn {
	c := &Conn{stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
	c.use(conn)
	return c
}

// use reads replies from a connection. Bytes that were buffered from the previous connection are lost.
func (c *Conn) use(conn net.Conn) {
	c.Conn, c.in = conn, textproto.NewReader(bufio.NewReader(io.LimitReader(conn, maxReplies)))
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// Cmd sends a command and reads its reply as [Conn.Reply] does.
func (c *Conn) Cmd(line string) (code int, text string, err error) {
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		return 0, "", err
	}
	return c.Reply()
}

// Reply reads the next reply with all of its lines. The code is 0 if there is an error. The error is a
// [textproto.ProtocolError] if the server does not speak FTP; its text quotes what the server has sent.
func (c *Conn) Reply() (code int, text string, err error) {
	// Other protocols may never send the end of a line, so the first byte must suffice.
	first, err := c.in.R.Peek(1)
	if err != nil {
		return 0, "", err
	}
	if first[0] < '1' || first[0] > '5' {
		line, _ := c.in.ReadLine()
		return 0, "", textproto.ProtocolError(fmt.Sprintf("no reply of FTP: %q", line))
	}
	return c.in.ReadResponse(0)
}

// StartTLS encrypts the connection, for example after the reply 234 to AUTH TLS.
func (c *Conn) StartTLS(ctx context.Context, cfg *tls.Config) (tls.ConnectionState, error) {
	conn := tls.Client(c.Conn, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		return tls.ConnectionState{}, err
	}
	c.use(conn)
	return conn.ConnectionState(), nil
}
