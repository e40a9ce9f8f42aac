package control_test

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// dialClear opens a data connection without TLS.
func (c *client) dialClear() net.Conn {
	c.t.Helper()
	clear := *c.Conn
	clear.TLS = nil
	conn, err := clear.Data()
	must.OK(c.t, err)
	c.t.Cleanup(func() { conn.Close() })
	return conn
}

// versions are the TLS versions to test.
var versions = []struct {
	name    string
	version uint16
}{{"tls-1.2", tls.VersionTLS12}, {"tls-1.3", tls.VersionTLS13}}

// bytewise reads single bytes, so that TLS reads no more from the kernel than it needs, like OpenSSL.
type bytewise struct{ net.Conn }

func (b bytewise) Read(p []byte) (int, error) { return b.Conn.Read(p[:min(len(p), 1)]) }

// TestUploadWithoutReading: a client that only writes to the data connection and closes it with unread data loses
// nothing.
func TestUploadWithoutReading(t *testing.T) {
	for _, v := range versions {
		for _, resume := range []bool{false, true} {
			name := v.name
			if resume {
				name += "-resumed"
			}
			t.Run(name, func(t *testing.T) {
				s := newSite(t, nil)
				s.tls = s.tls.Clone()
				s.tls.MaxVersion = v.version
				// Without a cache, Go's TLS client requests no tickets.
				s.tls.ClientSessionCache = tls.NewLRUClientSessionCache(0)
				c := s.loginTLS()
				for _, size := range []int{0, 1 << 10, 10 << 20} {
					content := strings.Repeat("x", size)
					cfg := s.tls.Clone()
					if !resume {
						cfg.ClientSessionCache = tls.NewLRUClientSessionCache(0)
					}
					conn := tls.Client(bytewise{c.dialClear()}, cfg)
					c.do("STOR f", "150 ")
					must.OK(t, conn.Handshake())
					must.Write(t, conn, content)
					must.OK(t, conn.Close())
					c.expect("226 ")
					c.Want(content, "RETR f")
				}
			})
		}
	}
}

// TestResumption: data connections in both directions resume the TLS session of the control connection, because
// some clients and servers require that to verify that both belong to the same client (RFC 4217, 10.2). A client
// that reads during an upload gets the ticket at its end.
func TestResumption(t *testing.T) {
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) {
			s := newSite(t, nil)
			s.tls = withCache(s.tls)
			s.tls.MaxVersion = v.version
			c := s.loginTLS()
			for range 2 {
				upload := c.Data().(*tls.Conn)
				c.do("STOR f", "150 ")
				must.Write(t, upload, "content")
				must.OK(t, upload.CloseWrite())
				if rest, err := io.ReadAll(upload); len(rest) > 0 || err != nil {
					t.Errorf("after the upload: got %q, %v", rest, err)
				}
				c.expect("226 ")
				download := c.Data().(*tls.Conn)
				c.do("RETR f", "150 ")
				if got, err := io.ReadAll(download); string(got) != "content" || err != nil {
					t.Errorf("RETR: %q, %v", got, err)
				}
				c.expect("226 ")
				if !upload.ConnectionState().DidResume || !download.ConnectionState().DidResume {
					t.Errorf(
						"resumed: upload %t, download %t", upload.ConnectionState().DidResume,
						download.ConnectionState().DidResume)
				}
			}
		})
	}
}
