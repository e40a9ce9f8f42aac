package server

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/certtest"
	"github.com/babelftp/babelftp/internal/config"
)

// writeCertificate writes a certificate with a serial number, and its key.
func writeCertificate(t *testing.T, files config.TLS, serial int64) {
	t.Helper()
	cert, key := certtest.New(t, &x509.Certificate{SerialNumber: big.NewInt(serial)})
	write(t, files.CertFile, cert)
	write(t, files.KeyFile, key)
}

// write replaces a file by another one, as a renewal does.
func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// serial is that of the certificate which a handshake shows.
func serial(t *testing.T, cfg *tls.Config) int64 {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	go func() { _ = tls.Server(theirs, cfg).HandshakeContext(t.Context()) }() // the client's side tells
	client := tls.Client(ours, &tls.Config{InsecureSkipVerify: true})         // it looks at the serial number only
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return client.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// A changed certificate is shown without a restart; while it is of no use the one before is.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	files := config.TLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	writeCertificate(t, files, 1)
	cfg, err := tlsConfig(files, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		do   func()
		want int64
	}{
		{"first", func() {}, 1},
		{"renewed", func() { writeCertificate(t, files, 2) }, 2},
		{"broken", func() { write(t, files.CertFile, "half a certificate") }, 2},
		{"missing", func() { _ = os.Remove(files.KeyFile) }, 2},
		{"repaired", func() { writeCertificate(t, files, 3) }, 3},
	} {
		step.do()
		if got := serial(t, cfg); got != step.want {
			t.Errorf("%s: certificate %d, want %d", step.name, got, step.want)
		}
	}
}

func TestTLSConfig(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	if cfg, err := tlsConfig(config.TLS{}, nil, log); cfg != nil || err != nil {
		t.Errorf("without a certificate: %v, %v", cfg, err)
	}
	if _, err := tlsConfig(config.TLS{CertFile: "nowhere", KeyFile: "nowhere"}, nil, log); err == nil {
		t.Error("missing files are no error")
	}
	cfg, err := tlsConfig(config.TLS{}, &tls.Certificate{}, log)
	if err != nil || cfg == nil || cfg.MinVersion != tls.VersionTLS12 {
		t.Errorf("a certificate that is built in: %v, %v", cfg, err)
	}
}
