// Package s3test starts S3 servers for tests. It runs MinIO and versitygw as processes, and the simulators of
// package s3sim, which enforce rules that these servers do not, inside the test process.
//
// A package that uses it passes its tests to [Main]:
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
// A server starts on a free loopback port when the first test needs it. All tests of the process share it, and each
// test creates its own bucket. Main stops the servers and removes their data.
//
// To test how clients handle faults, put a [Proxy] in front of a server and inject a [Fault] with one of the
// effects, such as [Refuse], [LoseResponse] or [CutResponse].
//
// With -short no processes are started: [Run] and [RunAll] use the AWS simulator, and tests that need another
// server are skipped.
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

// Main runs the tests of a package, stops the servers they started, removes their data and exits. m is the
// *testing.M, or a wrapper that cleans up more.
func Main(m interface{ Run() int }) {
	os.Exit(shared.run(m))
}

// Run runs f as a subtest on every real server. The subtest has the name of the server.
func Run(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	runOn(t, unlessShort(processes()), f)
}

// RunAll is like [Run] but includes the simulators, which accept any credentials and send no Server header.
func RunAll(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	runOn(t, unlessShort(append(processes(), simulators()...)), f)
}

// RunPackaged is like [Run] for the servers from Debian packages. The subtests run in parallel, because each of
// these servers takes seconds to start. CI runs only a few tests on them; make s3-servers runs all.
func RunPackaged(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	for _, d := range packaged() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			f(t, Start(t, d.name))
		})
	}
}

// unlessShort returns servers, or only the AWS simulator with -short.
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

// RunVersioned is like [Run] for the servers that support [Server.VersionedBucket].
func RunVersioned(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	runOn(t, unlessShort([]descriptor{processes()[0], versioned(), simulators()[0]}), f)
}

// RunLocked is like [Run] for the servers that support [Server.LockedBucket].
func RunLocked(t *testing.T, f func(t *testing.T, s *Server)) {
	t.Helper()
	runOn(t, unlessShort([]descriptor{processes()[0], versioned(), simulators()[0]}), f)
}

// Start returns the server with the given name and starts it if necessary. The names are "minio", "versitygw",
// "sim-aws", "sim-r2", "sim-strict", "minio-tls" (MinIO over HTTPS) and "versitygw-versions" (with a versioning
// directory). With -short it skips the test unless the server is a simulator.
func Start(tb testing.TB, name string) *Server {
	tb.Helper()
	if testing.Short() && !strings.HasPrefix(name, simulated) {
		tb.Skipf("-short has no S3 servers but simulators; this test needs %s", name)
	}
	all := descriptors()
	if strings.HasPrefix(name, simulated) { // of any profile
		all = []descriptor{{name: name, start: startSimulator}}
	}
	for _, d := range all {
		if d.name != name {
			continue
		}
		s, err := shared.server(tb.Context(), d)
		if err != nil {
			tb.Fatalf("S3 server %s: %v", name, err)
		}
		return s
	}
	tb.Fatalf("unknown S3 server %q", name)
	return nil
}

// A Program describes a server to run outside of tests. Start chooses values for zero fields.
type Program struct {
	Binary string // required
	Data   string // data directory, required

	Address                      string // host:port
	AccessKeyID, SecretAccessKey string
}

// Start starts the server with the given name, "minio" or "versitygw", and waits until it is ready. The server runs
// until stop is called or the process exits. Its data is kept.
func (p Program) Start(ctx context.Context, name string) (s *Server, stop func() error, err error) {
	for _, d := range descriptors() {
		if d.name == name && d.command != nil {
			return d.start(ctx, d, workspace{p.Binary, p.Data, p.Address, login{p.AccessKeyID, p.SecretAccessKey}})
		}
	}
	return nil, nil, fmt.Errorf("unknown S3 server program %q", name)
}

// shared holds the servers of the test process. It is a package variable because the tests of a process have
// nothing else in common, and starting a server for each test would take longer than the test.
var shared registry

// registry holds the servers that were started.
type registry struct {
	mu       sync.Mutex
	root     string // root of the repository; empty before run
	launches map[string]*launch
}

// launch is the start of one server, which happens once in a process.
type launch struct {
	once   sync.Once
	data   string // data directory
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

// server returns the server that d describes and starts it if necessary.
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

// stop stops the servers and removes their data.
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

// Repository returns the root of the repository: the closest directory above the working directory that contains
// go.mod.
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
