// Package s3test starts S3 servers for tests. It runs MinIO and versitygw as processes. The simulators of package s3sim
// run inside the test, and enforce rules that these servers do not.
//
// A package that uses it hands its tests to [Main]:
//
//	func TestMain(m *testing.M) { s3test.Main(m) }
//
//	func TestUpload(t *testing.T) {
//		s3test.Run(t, func(t *testing.T, s *s3test.Server) {
//			client, bucket := s.Client(), s.Bucket(t)
//			...
//		})
//	}
//
// A server starts when the first test asks for it, on a free loopback port. It serves every test of the process, and
// each test takes a bucket of its own. Main ends the servers and removes their data.
//
// With -short only simulators run: [Run] and [RunAll] run their test on that of AWS, and tests on others are skipped.
package s3test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Main runs the tests of a package, ends the servers they started, removes their data and exits the process. m is the
// *testing.M, or what wraps it to clean up more.
func Main(m interface{ Run() int }) {
	os.Exit(shared.run(m))
}

// Run runs f as a subtest on every real server, named after it.
func Run(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	runOn(t, unlessShort(processes()), f)
}

// RunAll is Run on the simulators too. They accept any credentials, and send no Server header.
func RunAll(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	runOn(t, unlessShort(append(processes(), simulators()...)), f)
}

// RunPackaged is Run on the servers that Debian's packages bring, at the same time, because each takes seconds to start.
// CI runs few tests on them, and make s3-servers all.
func RunPackaged(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	for _, d := range packaged() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			f(t, Start(t, d.name))
		})
	}
}

// unlessShort returns the servers, or with -short the simulator of AWS.
func unlessShort(servers []descriptor) []descriptor {
	if testing.Short() {
		return simulators()[:1]
	}
	return servers
}

func runOn(t *testing.T, servers []descriptor, f func(t *testing.T, s *Server)) {
	t.Helper()
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) { f(t, Start(t, d.name)) })
	}
}

// RunVersioned is Run on those servers that keep versions in a bucket of [Server.VersionedBucket].
func RunVersioned(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	runOn(t, unlessShort([]descriptor{processes()[0], versioned(), simulators()[0]}), f)
}

// RunLocked is Run on the servers that keep versions in a bucket of [Server.LockedBucket].
func RunLocked(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	runOn(t, unlessShort([]descriptor{processes()[0], versioned(), simulators()[0]}), f)
}

// Start returns the server called name ("minio", "versitygw", "sim-aws", "sim-r2", "sim-strict", "minio-tls", which is
// MinIO over https, or "versitygw-versions", which has a place for versions). It starts the server when no test has yet. With -short it skips the test unless the server is
// a simulator.
func Start(tb testing.TB, name string) *Server {
	tb.Helper()
	if testing.Short() && !strings.HasPrefix(name, simulated) {
		tb.Skipf("-short has no S3 servers but simulators; this test needs %s", name)
	}
	for _, d := range descriptors() {
		if d.name != name {
			continue
		}
		s, err := shared.server(tb.Context(), d)
		if err != nil {
			tb.Fatalf("S3 server %s: %v", name, err)
		}
		return s
	}
	tb.Fatalf("no S3 server is called %q", name)
	return nil
}

// A Program is a server outside of tests. Start chooses the value of a field that is zero.
type Program struct {
	Binary string // needed
	Data   string // folder, needed

	Address                      string // host and port
	AccessKeyID, SecretAccessKey string
}

// Start starts the server called name, "minio" or "versitygw", and waits until it answers. The server ends with stop
// or with the process. Its data stay.
func (p Program) Start(ctx context.Context, name string) (s *Server, stop func() error, err error) {
	for _, d := range descriptors() {
		if d.name == name && d.command != nil {
			return d.start(ctx, d, workspace{p.Binary, p.Data, p.Address, login{p.AccessKeyID, p.SecretAccessKey}})
		}
	}
	return nil, nil, fmt.Errorf("no S3 server that is a program is called %q", name)
}

// shared holds the servers of the test process. It is a variable of the package because tests of one process can
// share nothing else, and a server for each test would take longer than the test.
var shared registry

// registry is the servers that were started, and where.
type registry struct {
	mu       sync.Mutex
	root     string // the repository; empty until run
	launches map[string]*launch
}

// launch is the start of a server, once in this process.
type launch struct {
	once   sync.Once
	data   string // the folder of its files
	server *Server
	stop   func() error
	err    error
}

func (r *registry) run(m interface{ Run() int }) (code int) {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "s3test:", err)
		return 1
	}
	root, err := Repository()
	if err != nil {
		return fail(err)
	}
	r.mu.Lock()
	r.root, r.launches = root, map[string]*launch{}
	r.mu.Unlock()

	defer func() {
		if err := r.stop(); err != nil {
			code = max(code, fail(err))
		}
	}()
	return m.Run()
}

// server returns the server that d describes, started once.
func (r *registry) server(ctx context.Context, d descriptor) (*Server, error) {
	r.mu.Lock()
	if r.launches == nil {
		r.mu.Unlock()
		return nil, errors.New("call s3test.Main from TestMain")
	}
	l := r.launches[d.name]
	if l == nil {
		l = &launch{}
		r.launches[d.name] = l
	}
	r.mu.Unlock()

	l.once.Do(func() {
		program, parent := strings.TrimSuffix(strings.TrimSuffix(d.name, "-tls"), withVersions), ""
		if program == "minio" {
			parent = dataFolder()
		}
		if l.data, l.err = os.MkdirTemp(parent, "babelftp-s3test-"); l.err != nil {
			return
		}
		place := workspace{binary: filepath.Join(r.root, ".tools", "bin", program), data: l.data}
		l.server, l.stop, l.err = d.start(ctx, d, place)
	})
	return l.server, l.err
}

// stop ends the servers and removes their data.
func (r *registry) stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for name, l := range r.launches {
		if l.stop != nil {
			if err := l.stop(); err != nil {
				errs = append(errs, fmt.Errorf("stop S3 server %s: %w", name, err))
			}
		}
		if l.data != "" {
			errs = append(errs, os.RemoveAll(l.data))
		}
	}
	return errors.Join(errs...)
}

// Repository is the folder of go.mod above the working directory.
func Repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above %s", start)
		}
	}
}
