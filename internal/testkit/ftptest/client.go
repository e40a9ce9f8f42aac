package ftptest

import (
	"net"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A Client is a control connection. Errors and unexpected replies end the test.
type Client struct {
	*Conn
	tb testing.TB
}

// New returns a client on an existing connection.
func New(tb testing.TB, conn net.Conn) *Client { return &Client{NewConn(conn), tb} }

// Dial connects to a server and reads its greeting. The connection is closed at the end of the test.
func Dial(tb testing.TB, address string) *Client {
	tb.Helper()
	conn, err := net.Dial("tcp", address)
	must.OK(tb, err)
	c := New(tb, conn)
	tb.Cleanup(func() { _ = c.Close() })
	c.Reply(220)
	return c
}

// DialFrom connects from a local address and reads nothing. The connection is closed at the end of the test.
func DialFrom(tb testing.TB, from, to string) *net.TCPConn {
	tb.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", to)
	must.OK(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// Reply reads a reply, checks its code and returns its text.
func (c *Client) Reply(code int) string {
	c.tb.Helper()
	reply, err := c.Conn.Reply()
	must.OK(c.tb, err)
	got, text := Parse(reply)
	if got != code {
		c.tb.Fatalf("reply %q, want %d", reply, code)
	}
	return text
}

// Command sends a command line and checks the code of the reply. It returns the text of the reply.
func (c *Client) Command(code int, line string) string {
	c.tb.Helper()
	must.Write(c.tb, c, line+"\r\n")
	return c.Reply(code)
}

// WantReply sends a command line and checks the code and the text of the reply.
func (c *Client) WantReply(code int, text, line string) {
	c.tb.Helper()
	if got := c.Command(code, line); got != text {
		c.tb.Errorf("%s: %d %q, want %q", line, code, got, text)
	}
}

// WantClosed checks that the server closes the connection.
func (c *Client) WantClosed() {
	c.tb.Helper()
	must.OK(c.tb, c.Closed())
}

// Login logs in as a user.
func (c *Client) Login(user, password string) {
	c.tb.Helper()
	c.Command(331, "USER "+user)
	c.Command(230, "PASS "+password)
}

// Data opens a passive data connection, which is closed at the end of the test.
func (c *Client) Data() net.Conn {
	c.tb.Helper()
	data, err := c.Conn.Data()
	must.OK(c.tb, err)
	c.tb.Cleanup(func() { _ = data.Close() })
	return data
}

// Store uploads content as a file.
func (c *Client) Store(name, content string) {
	c.tb.Helper()
	reply, err := c.Upload("STOR "+name, content)
	c.done("STOR "+name, reply, err)
}

// Transfer returns the data that a command sends on the data connection.
func (c *Client) Transfer(line string) string {
	c.tb.Helper()
	content, reply, err := c.Download(line)
	c.done(line, reply, err)
	return content
}

// Want runs a transfer command and checks the received content.
func (c *Client) Want(content, line string) {
	c.tb.Helper()
	if got := c.Transfer(line); got != content {
		c.tb.Errorf("%s: %d bytes %.200q, want %d %.200q", line, len(got), got, len(content), content)
	}
}

func (c *Client) done(line, reply string, err error) {
	c.tb.Helper()
	if code, _ := Parse(reply); err != nil || code != 226 {
		c.tb.Fatalf("%s: reply %q, %v; want 226", line, reply, err)
	}
}
