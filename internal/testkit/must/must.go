// Package must performs steps that a test depends on, such as writing files and opening listeners, and ends the
// test if a step fails.
package must

import (
	"io"
	"net"
	"os"
	"testing"
)

// OK ends the test if err is not nil.
func OK(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// ReadFile returns the content of a file.
func ReadFile(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(name)
	OK(tb, err)
	return string(text)
}

// WriteFile writes a file that only its owner may read.
func WriteFile(tb testing.TB, name, text string) {
	tb.Helper()
	OK(tb, os.WriteFile(name, []byte(text), 0o600))
}

// Write writes text.
func Write(tb testing.TB, to io.Writer, text string) {
	tb.Helper()
	_, err := io.WriteString(to, text)
	OK(tb, err)
}

// Dial connects to an address. The connection is closed at the end of the test.
func Dial(tb testing.TB, address string) net.Conn {
	tb.Helper()
	conn, err := net.Dial("tcp", address)
	OK(tb, err)
	tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Listen listens on a free port of 127.0.0.1 until the end of the test.
func Listen(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	OK(tb, err)
	tb.Cleanup(func() { _ = l.Close() })
	return l
}
