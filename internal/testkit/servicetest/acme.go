// Package servicetest runs the services that a server under test depends on: an ACME authority, an LDAP directory,
// old FTP servers, antivirus and ICAP services, and a trace collector. [NewConfig] returns a configuration that
// tests can change, [Log] captures the server's log, and [Get] sends HTTP requests to the server.
package servicetest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

const (
	// startTimeout limits how long a service may take to start on a busy machine.
	startTimeout = time.Minute
	// pollInterval is the time between two attempts to reach a service.
	pollInterval = 25 * time.Millisecond
)

// An Authority is a running pebble, Let's Encrypt's ACME server for tests. It resolves every host name to
// 127.0.0.1.
type Authority struct {
	Directory string // URL
	CAFile    string // file with the certificate of the directory URL

	// HTTPAddress and TLSAddress are the addresses to which it connects to validate challenges, whatever the host.
	HTTPAddress, TLSAddress string

	management string
	client     *http.Client
}

// StartAuthority starts an authority that issues certificates with the given lifetime. It stops at the end of the
// test. With -short the test is skipped.
func StartAuthority(tb testing.TB, life time.Duration) *Authority {
	return startAuthority(tb, life, nil)
}

// StartBoundAuthority starts an authority that requires an external account binding with one of the keys, which are
// given in base64url by key identifier.
func StartBoundAuthority(tb testing.TB, life time.Duration, keys map[string]string) *Authority {
	return startAuthority(tb, life, keys)
}

func startAuthority(tb testing.TB, life time.Duration, keys map[string]string) *Authority {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short starts no process; this test needs pebble")
	}
	dir := tb.TempDir()
	certFile, keyFile := filepath.Join(dir, "pebble.crt"), filepath.Join(dir, "pebble.key")
	must.WriteCertificate(tb, certFile, keyFile, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	pem, err := os.ReadFile(certFile)
	must.OK(tb, err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	addresses := ftptest.FreeAddresses(tb, 4)
	a := &Authority{
		Directory: "https://" + addresses[0] + "/dir", CAFile: certFile, management: "https://" + addresses[1],
		HTTPAddress: addresses[2], TLSAddress: addresses[3],
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}},
			Timeout: startTimeout},
	}
	tb.Cleanup(a.client.CloseIdleConnections)
	config := filepath.Join(dir, "pebble.json")
	text, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": addresses[0], "managementListenAddress": addresses[1], "certificate": certFile,
		"privateKey": keyFile,
		"httpPort":   port(tb, a.HTTPAddress), "tlsPort": port(tb, a.TLSAddress),
		"retryAfter":                     map[string]any{"authz": 1, "order": 1},
		"externalAccountBindingRequired": keys != nil, "externalAccountMACKeys": keys,
		"profiles": map[string]any{"default": map[string]any{"description": "default",
			"validityPeriod": int(life.Seconds())}},
	}})
	if err == nil {
		err = os.WriteFile(config, text, 0o600)
	}
	must.OK(tb, err)
	a.run(tb, config, serveDNS(tb))
	return a
}

// run starts the process and waits until it is ready.
func (a *Authority) run(tb testing.TB, config, dns string) {
	tb.Helper()
	root, err := s3test.Repository()
	must.OK(tb, err)
	program := filepath.Join(root, ".tools", "bin", "pebble")
	if _, err := os.Stat(program); err != nil {
		tb.Fatalf("%s is missing; run: make tools", program)
	}
	var output bytes.Buffer
	cmd := exec.Command(program, "-config", config, "-dnsserver", dns)
	cmd.Env = []string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0"}
	cmd.Stdout, cmd.Stderr = &output, &output
	must.OK(tb, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		if err := <-ended; tb.Failed() {
			tb.Logf("pebble: %v\n%s", err, &output)
		}
	})
	deadline := time.After(startTimeout)
	for {
		response, err := a.client.Get(a.Directory)
		if err == nil {
			_ = response.Body.Close()
			return
		}
		select {
		case <-deadline:
			tb.Fatalf("pebble is not ready: %v", err)
		case err := <-ended:
			ended <- err
			tb.Fatalf("pebble has ended: %v", err)
		case <-time.After(pollInterval):
		}
	}
}

// Root returns the root certificate in PEM.
func (a *Authority) Root(tb testing.TB) []byte {
	tb.Helper()
	response, err := a.client.Get(a.management + "/roots/0")
	must.OK(tb, err)
	defer response.Body.Close()
	pem, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		tb.Fatalf("root certificate: %d, %v", response.StatusCode, err)
	}
	return pem
}

func port(tb testing.TB, address string) int {
	tb.Helper()
	resolved, err := net.ResolveTCPAddr("tcp", address)
	must.OK(tb, err)
	return resolved.Port
}

// serveDNS answers DNS queries for IPv4 addresses with 127.0.0.1, and all other queries with an empty response.
func serveDNS(tb testing.TB) (address string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // pebble sends its queries over TCP
	must.OK(tb, err)
	tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for answerQuery(conn) == nil {
				}
			}()
		}
	}()
	return l.Addr().String()
}

// answerQuery answers one DNS query. Over TCP, messages are preceded by their length (RFC 1035, section 4.2.2).
func answerQuery(conn net.Conn) error {
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return err
	}
	query := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, query); err != nil {
		return err
	}
	reply, err := answerDNS(query)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	return err
}

func answerDNS(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	if len(m.Questions) != 1 {
		return nil, fmt.Errorf("%d questions", len(m.Questions))
	}
	m.Response, m.Additionals = true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
	}
	return m.Pack()
}
