// Package redistest runs Redis servers for tests: Debian's redis-server on a port of the loopback interface.
package redistest

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/certtest"
)

const (
	// portAttempts is how many ports a start tries. Another process may take a free port before the server starts.
	portAttempts = 3
	// startTimeout is how long the server may take to answer on a busy machine.
	startTimeout = time.Minute
	pollInterval = 5 * time.Millisecond
)

// A Server is a Redis server with a password and no data on disk.
type Server struct {
	// CAFile is the certificate of a server with TLS, in PEM.
	CAFile string

	tb       testing.TB
	scheme   string
	dir      string
	port     string
	password string
	cmd      *exec.Cmd
	ended    chan struct{}
}

// Start starts a server, which ends with the test. Without the program the test fails; with -short it is skipped.
func Start(tb testing.TB) *Server { return start(tb, "redis") }

// StartTLS starts a server that speaks TLS only.
func StartTLS(tb testing.TB) *Server { return start(tb, "rediss") }

func start(tb testing.TB, scheme string) *Server {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short needs nothing but Go; this test needs redis-server")
	}
	s := &Server{tb: tb, scheme: scheme, dir: tb.TempDir(), password: rand.Text()}
	if scheme == "rediss" {
		cert, key := certtest.New(tb, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
		s.CAFile = filepath.Join(s.dir, "cert.pem")
		for name, text := range map[string]string{s.CAFile: cert, filepath.Join(s.dir, "key.pem"): key} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				tb.Fatal(err)
			}
		}
	}
	for range portAttempts {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		_, s.port, _ = net.SplitHostPort(listener.Addr().String())
		_ = listener.Close()
		if s.run() {
			return s
		}
	}
	tb.Fatal("redis-server ended at its start; see its output above")
	return nil
}

// run starts the process, and returns whether it answers.
func (s *Server) run() bool {
	s.tb.Helper()
	ports := []string{"--port", s.port}
	if s.CAFile != "" {
		ports = []string{
			"--port", "0", "--tls-port", s.port, "--tls-auth-clients", "no",
			"--tls-cert-file", s.CAFile, "--tls-key-file", filepath.Join(s.dir, "key.pem"), "--tls-ca-cert-file", s.CAFile,
		}
	}
	args := append(ports, "--bind", "127.0.0.1", "--requirepass", s.password, "--save", "", "--appendonly", "no", "--dir", s.dir)
	s.cmd = exec.Command("redis-server", args...)
	var output bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &output, &output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, cmd := make(chan error), s.cmd
	ended := make(chan struct{})
	s.ended = ended
	go func() { // the kernel sends Pdeathsig when the thread ends that started the process (https://go.dev/issue/27505)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the tests kill it
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		s.tb.Fatalf("cannot run redis-server, which make packages installs: %v", err)
	}
	s.tb.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			s.tb.Error(err)
		}
		<-ended
	})
	deadline := time.After(startTimeout)
	for {
		conn, err := net.Dial("tcp", s.address())
		if err == nil {
			_ = conn.Close()
			return true
		}
		select {
		case <-ended:
			s.tb.Log(output.String())
			return false
		case <-deadline:
			s.tb.Fatal("redis-server does not answer")
		case <-time.After(pollInterval):
		}
	}
}

func (s *Server) address() string { return net.JoinHostPort("127.0.0.1", s.port) }

// URL is that of the server, with its password.
func (s *Server) URL() string { return s.scheme + "://:" + s.password + "@" + s.address() }

// Kill ends the server, and its data with it.
func (s *Server) Kill() {
	s.tb.Helper()
	s.signal(syscall.SIGKILL)
	<-s.ended
}

// Restart starts the server again, without data.
func (s *Server) Restart() {
	s.tb.Helper()
	if !s.run() {
		s.tb.Fatal("redis-server ended when it started again")
	}
}

// Pause stops the process: it accepts connections, and answers nothing until Continue.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Continue lets the process answer again.
func (s *Server) Continue() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(signal syscall.Signal) {
	s.tb.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.tb.Fatal(err)
	}
}

// Do sends a command, and returns the lines of the answer. The server must not speak TLS.
func (s *Server) Do(command string) []string {
	s.tb.Helper()
	conn, err := net.Dial("tcp", s.address())
	if err != nil {
		s.tb.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("AUTH " + s.password + "\r\n" + command + "\r\nQUIT\r\n")); err != nil {
		s.tb.Fatal(err)
	}
	var lines []string
	for scanner := bufio.NewScanner(conn); scanner.Scan(); {
		lines = append(lines, strings.TrimSuffix(scanner.Text(), "\r"))
	}
	if len(lines) < 3 {
		s.tb.Fatalf("%s: the answer is %q", command, lines)
	}
	return lines[1 : len(lines)-1]
}
