package s3test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

const (
	// startTimeout limits how long a server may take to start on a busy machine.
	startTimeout = 2 * time.Minute

	// probeTimeout limits one probe. A server that is still starting may never respond to it.
	probeTimeout = 10 * time.Second

	// pollInterval is the time between two probes.
	pollInterval = 25 * time.Millisecond

	// portAttempts is the number of ports to try. Another process may take a free port before the server starts.
	portAttempts = 3

	// logTail limits the output of a server in an error, in bytes.
	logTail = 4 << 10
)

// errEnded means that a server exited too early.
var errEnded = errors.New("the process ended")

// process is a running server process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has exited
	err  error         // exit status, valid once done is closed
}

// startProcess starts the server that d describes and waits until it is ready.
func startProcess(ctx context.Context, d descriptor, p workspace) (*Server, func() error, error) {
	if _, err := os.Stat(p.binary); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s is missing; run: make tools", p.binary)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	var errs []error
	for range portAttempts {
		s, proc, err := tryProcess(ctx, d, p)
		if err == nil {
			stop := func() error {
				s.HTTPClient.CloseIdleConnections()
				return proc.kill()
			}
			return s, stop, nil
		}
		errs = append(errs, err)
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return nil, nil, errors.Join(errs...)
}

// tryProcess starts the server on a free port.
func tryProcess(ctx context.Context, d descriptor, p workspace) (*Server, *process, error) {
	address, release := p.address, func() {}
	if address == "" {
		const host = "127.0.0.1"
		var port uint16
		port, release = ftptest.ReservePorts(1, host)
		address = net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	s, proc, err := p.serve(ctx, d, address)
	if err != nil {
		release()
		return nil, nil, err
	}
	go func() {
		<-proc.done
		release()
	}()
	return s, proc, nil
}

// serve starts the server on an address.
func (p workspace) serve(ctx context.Context, d descriptor, address string) (*Server, *process, error) {
	s := &Server{
		Name:            d.name,
		Endpoint:        "http://" + address,
		Region:          region,
		AccessKeyID:     cmp.Or(p.login.accessKeyID, rand.Text()),
		SecretAccessKey: cmp.Or(p.login.secretAccessKey, rand.Text()),
		HTTPClient:      &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}},
	}
	if d.folders {
		s.Folder = p.data
	}
	if d.tls {
		if err := s.encrypt(filepath.Join(p.data, ".certs")); err != nil {
			return nil, nil, err
		}
	}
	output, err := os.Create(filepath.Join(p.data, "output.log"))
	if err != nil {
		return nil, nil, err
	}
	defer output.Close()

	args, env := d.command(p.data, address, login{accessKeyID: s.AccessKeyID, secretAccessKey: s.SecretAccessKey})
	cmd := exec.Command(p.binary, args...)
	cmd.Dir = p.data
	cmd.Env = append(env, "HOME="+p.data, "PATH="+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = dieWithParent()
	proc, err := run(cmd)
	if err != nil {
		return nil, nil, err
	}
	if err := proc.waitReady(ctx, s, d.ready); err != nil {
		err = errors.Join(err, proc.kill())
		return nil, nil, fmt.Errorf("%w; its output:\n%s", err, tail(output.Name()))
	}
	return s, proc, nil
}

// encrypt creates a certificate in MinIO's directory and makes the client trust it.
func (s *Server) encrypt(dir string) error {
	cert, key, err := must.MakeCertificate(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, content := range map[string]string{"public.crt": cert, "private.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(cert))
	s.Endpoint = strings.Replace(s.Endpoint, "http:", "https:", 1)
	s.HTTPClient.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: trusted}
	return nil
}

// run starts cmd on a thread that lives as long as the process. The kernel sends the signal set by dieWithParent
// when the thread that started the process ends (https://go.dev/issue/27505).
func run(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, <-started
}

// waitReady waits until the server lists its buckets and ready, if not nil, succeeds. Listing with the right
// credentials also proves that no other server took the port.
func (p *process) waitReady(ctx context.Context, s *Server, ready func(context.Context, *Server) error) error {
	client := s.Client(func(o *s3.Options) { o.RetryMaxAttempts = 1 })
	probe := func() error {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		_, err := client.ListBuckets(ctx, &s3.ListBucketsInput{})
		if err == nil && ready != nil {
			err = ready(ctx, s)
		}
		return err
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := probe()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%w: %w", errEnded, p.err)
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w", err)
		case <-ticker.C:
		}
	}
}

// kill kills the process. It needs no clean shutdown because its data is removed.
func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// tail returns the end of a file.
func tail(name string) []byte {
	content, err := os.ReadFile(name)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(content[max(0, len(content)-logTail):])
}
