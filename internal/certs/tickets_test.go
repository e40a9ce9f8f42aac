package certs

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestTicketKeys resumes a session on another server with the same keys, also after a reload that changes the TLS
// configuration.
func TestTicketKeys(t *testing.T) {
	certificate, client := must.CertificatePair(t, &x509.Certificate{DNSNames: []string{"ftp.example.com"}})
	client.ServerName = "ftp.example.com"
	client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	cfg := config.Default()
	start := func() (*Set, string) {
		s, err := Open(cfg, &certificate, nil, slog.New(slog.DiscardHandler))
		must.OK(t, err)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must.OK(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				server := tls.Server(conn, s.Config())
				_, _ = server.Write([]byte("x"))
				_ = server.Close()
			}
		}()
		return s, l.Addr().String()
	}
	a, addressA := start()
	b, addressB := start()
	resumes := func(address string) bool {
		t.Helper()
		conn, err := tls.Dial("tcp", address, client)
		must.OK(t, err)
		defer conn.Close()
		_, err = io.ReadAll(conn)
		must.OK(t, err)
		return conn.ConnectionState().DidResume
	}
	resumes(addressA)
	if resumes(addressB) {
		t.Error("servers with different keys resume the sessions of each other")
	}
	keys := [][32]byte{{1}, {2}}
	a.SetTicketKeys(keys)
	b.SetTicketKeys(keys)
	resumes(addressA)
	if !resumes(addressB) {
		t.Error("servers with the same keys do not resume the sessions of each other")
	}
	changed := *cfg
	changed.TLS.MinVersion = tls.VersionTLS13
	change, err := b.Prepare(&changed)
	must.OK(t, err)
	change.Apply()
	resumes(addressA)
	if !resumes(addressB) {
		t.Error("a reload removes the keys")
	}
}
