// Package ftptest speaks FTP with a server under test (RFC 959), in two layers. A [Conn] is byte-exact: it sends what
// a test writes, shows what came, and returns errors. A [Client] is convenient: it wants replies by their codes, and
// what fails, fails the test.
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

// timeout is the default of [Conn.Timeout], for a machine that does much else.
const timeout = 2 * time.Minute

// A Conn is a control connection. What a test writes goes out as it is, and a reply has every NUL and IAC that came.
type Conn struct {
	net.Conn
	In  *bufio.Reader // what the server has sent
	TLS *tls.Config   // of data connections, nil in the clear

	Timeout time.Duration // the maximum for one answer, and for a data connection
}

// NewConn speaks on a connection.
func NewConn(conn net.Conn) *Conn {
	return &Conn{Conn: conn, In: bufio.NewReader(&noted{Reader: conn}), Timeout: timeout}
}

// Open connects to a server and reads nothing.
func Open(address string) (*Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return NewConn(conn), nil
}

// Reply reads one reply, whose lines it divides by CRLF.
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

// Send sends a command line and reads its reply.
func (c *Conn) Send(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\r\n"); err != nil {
		return "", err
	}
	return c.Reply()
}

// Bytes reads so many bytes that are no reply.
func (c *Conn) Bytes(n int) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(c.Timeout))
	bytes := make([]byte, n)
	n, err := io.ReadFull(c.In, bytes)
	return string(bytes[:n]), err
}

// Closed waits until the server hangs up. The error says what came instead.
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

// StartTLS goes under TLS, after the reply to AUTH.
func (c *Conn) StartTLS(cfg *tls.Config) error {
	conn := tls.Client(c.Conn, cfg)
	if err := conn.Handshake(); err != nil {
		return err
	}
	c.Conn = conn
	c.In.Reset(&noted{Reader: conn})
	return nil
}

// Passive asks by EPSV for a data connection and returns the address to connect to (RFC 2428, section 3).
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

// DialData opens a data connection to an address, from that of the control connection.
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

// Begin opens a passive data connection and sends a command that transfers data over it. Without a reply 1xx it returns
// no data connection. After the data the caller reads the last reply.
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

// Upload sends content on a data connection and returns the last reply, which is the first one if it is not 1xx.
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

// Download returns what a command sends on a data connection, and the last reply, which is the first one if it is not
// 1xx.
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

// Parse takes a reply apart: its code, 0 if it has none, and its text without the code, whose lines it divides by LF.
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
