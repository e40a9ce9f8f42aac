package relay

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// signature begins headers of version 2 (section 2.2).
const signature = "\r\n\r\n\x00\r\nQUIT\n"

const (
	addresses4 = "\xcb\x00\x71\x07\xc0\x00\x02\x01\x30\x39\x00\x15" // 203.0.113.7:12345 to 192.0.2.1:21
	addresses6 = " \x01\r\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07 " +
		"\x01\r\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x30\x39\x00\x15"
)

// read parses the header that begins text, and closes the connection.
func read(t *testing.T, text string) (*proxyConn, error) {
	t.Helper()
	return readPieces(t, text, len(text))
}

// readPieces is like read, but the client writes size bytes at once.
func readPieces(t *testing.T, text string, size int) (*proxyConn, error) {
	t.Helper()
	server, client := net.Pipe()
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for len(text) > 0 {
			n := min(size, len(text))
			_, _ = io.WriteString(client, text[:n])
			text = text[n:]
		}
		_ = client.Close()
	}()
	return readHeader(server)
}

// The connection has the addresses of its header, and the data after the header. Headers may arrive in pieces.
func TestRead(t *testing.T) {
	for name, tc := range map[string]struct{ header, client, reached string }{
		"v1-ipv4": {"PROXY TCP4 203.0.113.7 192.0.2.1 12345 21\r\n", "203.0.113.7:12345", "192.0.2.1:21"},
		"v1-ipv6": {"PROXY TCP6 2001:db8::7 2001:db8::1 12345 21\r\n", "[2001:db8::7]:12345",
			"[2001:db8::1]:21"},
		"v1-mapped": {"PROXY TCP6 ::ffff:203.0.113.7 ::ffff:192.0.2.1 12345 21\r\n", "203.0.113.7:12345",
			"192.0.2.1:21"},
		"v1-unknown":        {"PROXY UNKNOWN\r\n", "pipe", "pipe"},
		"v1-unknown-ignore": {"PROXY UNKNOWN ::1 ::1 1 2\r\n", "pipe", "pipe"},
		"v2-ipv4":           {signature + "\x21\x11\x00\x0c" + addresses4, "203.0.113.7:12345", "192.0.2.1:21"},
		"v2-ipv6":           {signature + "\x21\x21\x00\x24" + addresses6, "[2001:db8::7]:12345", "[2001:db8::1]:21"},
		"v2-tlv": {signature + "\x21\x11\x00\x11" + addresses4 + "\xe5\x00\x02hi", "203.0.113.7:12345",
			"192.0.2.1:21"},
		"v2-local":      {signature + "\x20\x00\x00\x00", "pipe", "pipe"},
		"v2-local-ipv4": {signature + "\x20\x11\x00\x0c" + addresses4, "pipe", "pipe"},
	} {
		check := func(t *testing.T, piece int) {
			t.Helper()
			c, err := readPieces(t, tc.header+"USER alice\r\n", piece)
			must.OK(t, err)
			if got := c.RemoteAddr().String(); got != tc.client {
				t.Errorf("got client %s, want %s", got, tc.client)
			}
			if got := c.LocalAddr().String(); got != tc.reached {
				t.Errorf("got reached address %s, want %s", got, tc.reached)
			}
			if c.isProxied() != (tc.client != "pipe") {
				t.Errorf("isProxied() = %v", c.isProxied())
			}
			if got := string(c.relayValue()); (got == "hi") != (name == "v2-tlv") {
				t.Errorf("unexpected TLV %q", got)
			}
			if rest, err := io.ReadAll(c); err != nil || string(rest) != "USER alice\r\n" {
				t.Errorf("unexpected rest %q, %v", rest, err)
			}
		}
		t.Run(name, func(t *testing.T) { check(t, 1<<10) })
		t.Run(name+"-in-pieces", func(t *testing.T) { check(t, 1) })
	}
}

func TestReadErrors(t *testing.T) {
	for name, text := range map[string]string{
		"command":       "USER alice\r\n",
		"tls":           "\x16\x03\x01\x02\x00\x01",
		"half-v1":       "PROXY TCP4 203.0.113.7",
		"no-addresses":  "PROXY TCP4\r\n",
		"wrong-family":  "PROXY TCP4 2001:db8::7 2001:db8::1 12345 21\r\n",
		"endless-v1":    "PROXY TCP4 " + strings.Repeat("1", 1000),
		"half-v2":       signature + "\x21\x11\x00\x0c\xcb\x00",
		"udp":           signature + "\x21\x12\x00\x0c" + addresses4,
		"unix":          signature + "\x21\x31\x00\xd8" + strings.Repeat("\x00", 216),
		"unspecified":   signature + "\x21\x00\x00\x00",
		"other-version": signature + "\x31\x11\x00\x0c" + addresses4,
		"long":          signature + "\x21\x11\xff\xff" + addresses4,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, text); !errors.Is(err, errNoHeader) {
				t.Errorf("got error %v, want errNoHeader", err)
			}
		})
	}
	if _, err := read(t, ""); !errors.Is(err, errClosed) {
		t.Errorf("without a byte: got %v, want errClosed", err)
	}
}

// A header must be complete before the timeout, however it is sent.
func TestReadInTime(t *testing.T) {
	for _, every := range []time.Duration{time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			server, client := net.Pipe()
			defer server.Close()
			defer client.Close()
			done := make(chan struct{})
			defer close(done)
			go func() {
				for range 100 {
					select {
					case <-time.After(every):
					case <-done:
						return
					}
					if _, err := client.Write([]byte("P")); err != nil {
						return
					}
				}
			}()
			began := time.Now()
			_, err := readHeader(server)
			if !errors.Is(err, errNoHeader) || time.Since(began) > headerTimeout {
				t.Errorf("got error %v after %v", err, time.Since(began))
			}
			if every == time.Hour && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got error %v, want a timeout", err)
			}
		})
	}
}

// Headers made by relayHeader can be read.
func TestHeader(t *testing.T) {
	tcp := func(text string) *net.TCPAddr {
		t.Helper()
		addr, err := net.ResolveTCPAddr("tcp", text)
		must.OK(t, err)
		return addr
	}
	for _, tc := range []struct{ client, reached string }{
		{"203.0.113.7:12345", "192.0.2.1:30000"},
		{"[2001:db8::7]:12345", "[2001:db8::1]:30000"},
		{"203.0.113.7:12345", "[2001:db8::1]:30000"},
	} {
		header, err := relayHeader(tcp(tc.client), tcp(tc.reached), []byte("value"))
		must.OK(t, err)
		c, err := read(t, string(header))
		must.OK(t, err)
		if c.RemoteAddr().String() != tc.client || c.LocalAddr().String() != tc.reached ||
			string(c.relayValue()) != "value" {
			t.Errorf(
				"got %s to %s with %q, want %s to %s", c.RemoteAddr(), c.LocalAddr(), c.relayValue(), tc.client, tc.reached)
		}
	}
	if _, err := relayHeader(tcp("203.0.113.7:1"), tcp("192.0.2.1:1"), make([]byte, 1<<17)); err == nil {
		t.Error("got a header with a value of 128 KiB")
	}
}

// Whatever a load balancer sends, the result is addresses or an error.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"PROXY TCP4 203.0.113.7 192.0.2.1 12345 21\r\n", "PROXY UNKNOWN\r\n", "USER alice\r\n", "",
		signature + "\x21\x11\x00\x0c" + addresses4, signature + "\x21\x21\x00\x24" + addresses6,
		signature + "\x20\x00\x00\x00",
		signature + "\x21\x11\x00\x11" + addresses4 + "\xe5\x00\x02hi", signature + "\x21\x13\x00\x0c" + addresses4,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := read(t, text)
		if err == nil && (c.RemoteAddr() == nil || c.LocalAddr() == nil || c.RemoteAddr().String() == "") {
			t.Errorf("header without addresses: got %v, %v", c.RemoteAddr(), c.LocalAddr())
		}
	})
}
