// Package ftptest speaks FTP with a server under test, reply by reply (RFC 959). It is for tests that ask whether a whole server
// works; what a control connection does with single bytes is tested in internal/control.
package ftptest

import (
	"io"
	"net"
	"net/textproto"
	"regexp"
	"testing"
	"time"
)

// patience is how long a session may take.
const patience = time.Minute

// A Client is a control connection. What fails, fails the test.
type Client struct {
	tb testing.TB
	*textproto.Conn
}

// New speaks on a connection.
func New(tb testing.TB, conn net.Conn) *Client {
	return &Client{tb: tb, Conn: textproto.NewConn(conn)}
}

// Dial connects to a server and reads its greeting. The connection ends with the test.
func Dial(tb testing.TB, address string) *Client {
	tb.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	c := New(tb, conn)
	tb.Cleanup(func() { _ = c.Close() })
	c.Reply(220)
	return c
}

// Reply reads a reply, wants a code and returns the text.
func (c *Client) Reply(code int) string {
	c.tb.Helper()
	_, text, err := c.ReadResponse(code)
	if err != nil {
		c.tb.Fatalf("reply %v, want %d", err, code)
	}
	return text
}

// Command sends a command line and reads its reply.
func (c *Client) Command(code int, line string) string {
	c.tb.Helper()
	if err := c.PrintfLine("%s", line); err != nil {
		c.tb.Fatal(err)
	}
	return c.Reply(code)
}

// Login logs in.
func (c *Client) Login(user, password string) {
	c.tb.Helper()
	c.Command(331, "USER "+user)
	c.Command(230, "PASS "+password)
}

// Data opens a passive data connection.
func (c *Client) Data() net.Conn {
	c.tb.Helper()
	text := c.Command(229, "EPSV")
	match := regexp.MustCompile(`\(\|\|\|(\d+)\|\)`).FindStringSubmatch(text)
	if match == nil {
		c.tb.Fatalf("the reply to EPSV has no port: %s", text)
	}
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", match[1]))
	if err != nil {
		c.tb.Fatal(err)
	}
	return conn
}

// Store uploads.
func (c *Client) Store(name, content string) {
	c.tb.Helper()
	conn := c.Data()
	c.Command(150, "STOR "+name)
	if _, err := io.WriteString(conn, content); err != nil {
		c.tb.Fatal(err)
	}
	_ = conn.Close()
	c.Reply(226)
}

// Transfer returns what a command sends on the data connection.
func (c *Client) Transfer(line string) string {
	c.tb.Helper()
	conn := c.Data()
	defer conn.Close()
	c.Command(150, line)
	content, err := io.ReadAll(conn)
	if err != nil {
		c.tb.Fatal(err)
	}
	c.Reply(226)
	return string(content)
}
