// Package kubeserver runs the Kubernetes API server with etcd, for the tests of make kube. There are no controllers and
// no nodes: nothing collects garbage, and no pod runs.
package kubeserver

import (
	"bytes"
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// startTimeout limits how long the API server may take to become ready on a busy machine.
const startTimeout = 3 * time.Minute

// pollInterval is the time between two requests of a test that waits.
const pollInterval = 50 * time.Millisecond

// adminToken is the token of a user in the group system:masters, which may do everything.
const adminToken = "admin"

// A Server is an API server that authorizes requests by RBAC. It stops at the end of the test.
type Server struct {
	*Client // of the administrator
	daemon  *daemon
}

// A daemon is the process of the API server, which several subtests share.
type daemon struct {
	tb      testing.TB // of Start
	program string
	args    []string
	running *process
}

// Start starts etcd and the API server and waits until it is ready.
func Start(tb testing.TB) *Server {
	tb.Helper()
	root, err := s3test.Repository()
	must.OK(tb, err)
	dir, addresses := tb.TempDir(), ftptest.FreeAddresses(tb, 3)
	store, peers, address := "http://"+addresses[0], "http://"+addresses[1], addresses[2]
	launch(
		tb, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", store,
		"--advertise-client-urls", store, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
		"--initial-cluster", "default="+peers, "--unsafe-no-fsync", "--log-level", "warn")

	authority := must.NewAuthority(tb, "kubernetes")
	cert, key := authority.Issue(&x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	accounts, accountsKey := must.Certificate(tb, &x509.Certificate{DNSNames: []string{"accounts.example"}})
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		must.WriteFile(tb, name, text)
		return name
	}
	_, port, err := net.SplitHostPort(address)
	must.OK(tb, err)
	s := &Server{daemon: &daemon{
		tb: tb, program: filepath.Join(root, ".tools", "bin", "kube-apiserver"),
		args: []string{
			"--etcd-servers", store, "--bind-address", "127.0.0.1", "--secure-port", port,
			"--cert-dir", filepath.Join(dir, "certs"),
			"--tls-cert-file", file("server.crt", cert), "--tls-private-key-file", file("server.key", key),
			"--service-cluster-ip-range", "10.0.0.0/16,fd00::/108",
			"--token-auth-file", file("tokens.csv", adminToken+",admin,admin,system:masters\n"),
			"--authorization-mode", "RBAC",
			"--service-account-issuer", "https://kubernetes.default.svc",
			"--service-account-key-file", file("accounts.crt", accounts),
			"--service-account-signing-key-file", file("accounts.key", accountsKey),
			"--disable-admission-plugins", "ServiceAccount",
		},
	}}
	s.Client = NewClient(tb, "https://"+address, adminToken, authority.Certificate)
	tb.Cleanup(s.http.CloseIdleConnections)
	s.Resume()
	return s
}

// In returns the server for a subtest.
func (s *Server) In(tb testing.TB) *Server { return &Server{s.For(tb), s.daemon} }

// Resume starts the API server again after Halt, on the same address and with the same objects.
func (s *Server) Resume() {
	s.tb.Helper()
	s.daemon.running = launch(s.daemon.tb, s.daemon.program, s.daemon.args...)
	deadline := time.Now().Add(startTimeout)
	for {
		code, text, err := s.Request(http.MethodGet, "/readyz", "", "")
		if err == nil && code == http.StatusOK {
			return
		}
		select {
		case <-s.daemon.running.done:
			s.tb.Fatal("the API server has exited")
		case <-time.After(pollInterval):
		}
		if time.Now().After(deadline) {
			s.tb.Fatalf("the API server is not ready: %d %v %s", code, err, text)
		}
	}
}

// Halt kills the API server. etcd keeps the objects.
func (s *Server) Halt() { s.daemon.running.kill() }

// A process is a running program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has exited
}

// launch runs a program until the end of the test. If the test has failed, the end of its output is shown.
func launch(tb testing.TB, name string, args ...string) *process {
	tb.Helper()
	var out bytes.Buffer
	p := &process{exec.CommandContext(context.WithoutCancel(tb.Context()), name, args...), make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &out, &out
	if err := p.cmd.Start(); err != nil {
		tb.Fatalf("%v; run: make kube", err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	tb.Cleanup(func() {
		p.kill()
		const shown = 5000
		if tb.Failed() {
			tb.Logf("%s:\n%s", filepath.Base(name), strings.ToValidUTF8(out.String()[max(0, out.Len()-shown):], ""))
		}
	})
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}
