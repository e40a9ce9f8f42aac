// Package ftptest is an FTP client for tests (RFC 959) with two layers. A [Conn] is byte-exact: it sends exactly
// what a test writes, shows exactly what was received, and returns errors. A [Client] is convenient: it checks
// reply codes, and every failure ends the test.
package ftptest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// timeout is the default of [Conn.Timeout]. It is long enough for a busy machine.
const timeout = 2 * time.Minute

// A Conn is a control connection. It sends what a test writes unchanged, and its replies include every received NUL
// and IAC.
type Conn struct {
	net.Conn
	In  *bufio.Reader // data received from the server
	TLS *tls.Config   // for data connections, nil without TLS

	Timeout time.Duration // limit for one reply, and for a data connection
}

// NewConn returns a Conn on an existing connection.
func NewConn(conn net.Conn) *Conn {
	return &Conn{Conn: conn, In: bufio.NewReader(&recordingReader{Reader: conn}), Timeout: timeout}
}

// Open connects to a server and reads nothing.
func Open(address string) (*Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return NewConn(conn), nil
}

// Reply reads one reply. Its lines end in CRLF.
func (c *Conn) Reply() (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.Timeout))
	reply := ""
	for {
		line := ""
		for !strings.HasSuffix(line, "\r\n") {
			part, err := c.In.ReadString('\n')
			if err != nil {
				return "", fmt.Errorf("after %q: %w", reply+line+part, err)
			}
			line += part
		}
		reply += line
		code := reply[:min(3, len(reply)-2)]
		if reply == line && !strings.HasPrefix(line, code+"-") || strings.HasPrefix(line, code+" ") {
			return strings.TrimSuffix(reply, "\r\n"), nil
		}
	}
}

// Send sends a command line and reads the reply.
func (c *Conn) Send(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		return "", err
	}
	return c.Reply()
}

// Bytes reads n bytes that are not part of a reply.
func (c *Conn) Bytes(n int) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.Timeout))
	bytes := make([]byte, n)
	n, err := io.ReadFull(c.In, bytes)
	return string(bytes[:n]), err
}

// Closed waits until the server closes the connection. It returns an error if data arrives instead.
func (c *Conn) Closed() error {
	_ = c.SetReadDeadline(time.Now().Add(c.Timeout))
	b, err := c.In.ReadByte()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("want the end: %w", err)
	default:
		return fmt.Errorf("read %q, want the end", b)
	}
}

// StartTLS starts TLS after the reply to AUTH.
func (c *Conn) StartTLS(cfg *tls.Config) error {
	conn := tls.Client(c.Conn, cfg)
	if err := conn.Handshake(); err != nil {
		return err
	}
	c.Conn = conn
	c.In.Reset(&recordingReader{Reader: conn})
	return nil
}

// Passive sends EPSV and returns the address of the data connection (RFC 2428, section 3).
func (c *Conn) Passive() (string, error) {
	reply, err := c.Send("EPSV")
	if err != nil {
		return "", err
	}
	_, port, found := strings.Cut(reply, "(|||")
	port, _, closed := strings.Cut(port, "|)")
	if !strings.HasPrefix(reply, "229 ") || !found || !closed {
		return "", fmt.Errorf("EPSV: reply %q has no port", reply)
	}
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	return net.JoinHostPort(host, port), err
}

// DialData opens a data connection from the local address of the control connection.
func (c *Conn) DialData(address string) (net.Conn, error) {
	var dialer net.Dialer
	if own, ok := c.LocalAddr().(*net.TCPAddr); ok {
		dialer.LocalAddr = &net.TCPAddr{IP: own.IP, Zone: own.Zone}
	}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(c.Timeout))
	if c.TLS != nil {
		return tls.Client(conn, c.TLS), nil
	}
	return conn, nil
}

// Data opens a passive data connection.
func (c *Conn) Data() (net.Conn, error) {
	address, err := c.Passive()
	if err != nil {
		return nil, err
	}
	return c.DialData(address)
}

// Begin opens a passive data connection and sends a transfer command. If the reply is not 1xx, the data connection
// is nil. The caller transfers the data and then reads the final reply.
func (c *Conn) Begin(line string) (data net.Conn, reply string, err error) {
	if data, err = c.Data(); err != nil {
		return nil, "", err
	}
	if reply, err = c.Send(line); err != nil || !strings.HasPrefix(reply, "1") {
		_ = data.Close()
		return nil, reply, err
	}
	return data, reply, nil
}

// Upload sends content on a data connection and returns the final reply, or the first reply if it is not 1xx.
func (c *Conn) Upload(line, content string) (reply string, err error) {
	data, reply, err := c.Begin(line)
	if data == nil {
		return reply, err
	}
	defer data.Close()
	if _, err := io.WriteString(data, content); err != nil {
		return "", fmt.Errorf("%.300q: %w", line, err)
	}
	_ = data.Close()
	return c.Reply()
}

// Download returns the data that a command sends on a data connection and the final reply, or the first reply if it
// is not 1xx.
func (c *Conn) Download(line string) (content, reply string, err error) {
	data, reply, err := c.Begin(line)
	if data == nil {
		return "", reply, err
	}
	defer data.Close()
	bytes, err := io.ReadAll(data)
	if err != nil {
		return "", "", fmt.Errorf("%.300q: %w", line, err)
	}
	reply, err = c.Reply()
	return string(bytes), reply, err
}

// Parse splits a reply into its code, 0 if missing, and its text. Lines of the text are separated by LF.
func Parse(reply string) (code int, text string) {
	code, err := strconv.Atoi(reply[:min(3, len(reply))])
	if err != nil || len(reply) < 4 {
		return code, ""
	}
	lines := strings.Split(reply, "\r\n")
	last := len(lines) - 1
	lines[last] = strings.TrimPrefix(lines[last], reply[:3]+" ")
	lines[0] = strings.TrimPrefix(lines[0], reply[:3]+"-")
	return code, strings.Join(lines, "\n")
}
