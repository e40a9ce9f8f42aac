// Package embeddeds3 runs an S3 server inside the process, so that the demo needs no other program.
//
//	server, err := embeddeds3.Start(ctx, embeddeds3.Options{Dir: dir})
//	client := server.Client()
//	err = server.Close(ctx)
//
// The server is versitygw (https://github.com/versity/versitygw) with its posix backend. A bucket is a folder in
// [Options.Dir], and an object is a file in it. The metadata of an object is stored in user extended attributes of the
// file. Clients connect over a Unix socket in a folder that only the user of the process can enter. [Options.Listen]
// also opens a TCP address.
//
// The file system sets limits: an object "a" cannot exist next to an object "a/b", and path segments must not be
// longer than 255 bytes, empty, "." or "..". If the process crashes, a write is either complete or absent. The server
// does not sync files to the disk, so a power failure may lose them.
//
// versitygw resolves every path relative to the working directory, and changes it to Options.Dir. The process keeps
// this working directory from [Start] to [Server.Close], so make all other paths absolute first. For the same reason a
// process can only run one Server, and Start refuses a second one.
package embeddeds3

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"

	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// Region is the region of the server.
	Region = "us-east-1"

	// Endpoint is the base URL for requests of [Server.Client], which connects to the socket whatever the host.
	Endpoint = "http://localhost"

	// maxParts is the maximum number of parts in a multipart upload.
	maxParts = 10_000

	// maxCopy is the maximum size of an object, in bytes, that S3 copies in one request. With versitygw's zero value,
	// every copy would fail.
	maxCopy = 5 << 30

	// maxConnections and maxRequests are versitygw's defaults. Above them it responds 503 SlowDown.
	maxConnections = 250_000
	maxRequests    = 100_000

	// maxSocketPath is the maximum length of a Unix socket path on all systems: sun_path is 104 bytes on the BSDs and
	// 108 on Linux, including the final NUL.
	maxSocketPath = 103
)

// Options configures a [Server]. Only Dir is required.
type Options struct {
	// Dir is the data folder. Start creates it if it is missing, and resolves a relative path.
	Dir string

	// Listen is a TCP address (host:port) for other clients, in addition to the socket. With port 0 the server chooses
	// a free port, which [Server.Addr] returns.
	Listen string

	// Logger logs an error if the server ends unexpectedly. The default discards it.
	Logger *slog.Logger
}

// Server is a running embedded S3 server.
type Server struct {
	// AccessKeyID and SecretAccessKey are the credentials of the only account, which has all permissions. They change
	// with every start.
	AccessKeyID, SecretAccessKey string

	addr       string
	socketDir  string
	workingDir string // working directory before Start
	lock       *folderLock
	backend    *posix.Posix
	api        *s3api.S3ApiServer
	httpClient *http.Client
	logger     *slog.Logger

	serving  atomic.Bool   // true from the end of Start to the beginning of Close
	served   chan struct{} // closed when serving has ended
	serveErr error         // result of serving, once served is closed

	stop    sync.Once     // shutdown, which the HTTP library allows only once
	stopped chan struct{} // closed when the shutdown has ended
	stopErr error         // result of the shutdown, once stopped is closed
}

// Start starts a server for opts.Dir, and returns when it accepts requests. ctx only limits the start; call
// [Server.Close] to end the server.
//
// Start fails if it cannot create or write the data folder, or cannot listen on opts.Listen. It also fails if the file
// system does not support user extended attributes, or if another Server uses the folder or runs in this process.
func Start(ctx context.Context, opts Options) (*Server, error) {
	s, err := start(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("embedded S3: %w", err)
	}
	return s, nil
}

func start(ctx context.Context, opts Options) (_ *Server, err error) {
	if opts.Dir == "" {
		return nil, errors.New("no data folder: set Options.Dir")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	s := &Server{
		AccessKeyID:     rand.Text(),
		SecretAccessKey: rand.Text(),
		served:          make(chan struct{}),
		stopped:         make(chan struct{}),
		logger:          opts.Logger,
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.workingDir, err = os.Getwd(); err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	if s.lock, err = prepareFolder(dir, s.workingDir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()

	if s.addr, err = resolvePort(ctx, opts.Listen); err != nil {
		return nil, err
	}
	// The folder is private (0700), so that other users cannot use the socket in it.
	if s.socketDir, err = os.MkdirTemp("", "babelftp-s3-"); err != nil {
		return nil, err
	}
	socket := filepath.Join(s.socketDir, "s3.sock")
	if len(socket) > maxSocketPath {
		return nil, fmt.Errorf(
			"the socket path %s is longer than %d bytes: set TMPDIR to a shorter folder", socket, maxSocketPath)
	}
	s.httpClient = newHTTPClient(socket)

	// Use named temporary files. With O_TMPFILE, versitygw would replace an object through a hidden file with a longer
	// name. A crash would leave that file as an object, and names of 228 bytes or more would fail. There are no lock
	// files, because only one process writes to the folder.
	s.backend, err = posix.New(dir, meta.XattrMeta{}, posix.PosixOpts{
		ForceNoTmpFile:      true,
		ForceNoObjLockFile:  true,
		CopyObjectThreshold: maxCopy,
	})
	if err != nil {
		return nil, err
	}
	return s, s.serve(ctx, socket)
}

// serve starts the HTTP server and waits until it listens.
func (s *Server) serve(ctx context.Context, socket string) error {
	listening := make(chan struct{})
	root := auth.Account{Access: s.AccessKeyID, Secret: s.SecretAccessKey, Role: auth.RoleAdmin}
	api, err := s3api.New(
		lock(s.backend),
		middlewares.RootUserConfig{Access: root.Access, Secret: root.Secret},
		Region,
		auth.NewIAMServiceSingle(root),
		nil, nil, nil, nil, // no access log, no admin log, no events, no metrics
		s3api.WithQuiet(),
		s3api.WithKeepAlive(),
		s3api.WithConcurrencyLimiter(maxConnections, maxRequests),
		s3api.WithMpMaxParts(maxParts),
		s3api.WithMiddleware("/", refuseNames),
		s3api.WithOnListen(func() { close(listening) }),
	)
	if err != nil {
		return err
	}

	// TCP comes first because it can fail, and after a failure versitygw does not close what it has already opened.
	addresses := []string{socket}
	if s.addr != "" {
		addresses = []string{s.addr, socket}
	}
	panics.Go(func() {
		defer close(s.served)
		s.serveErr = api.ServeMultiPort(addresses)
		if s.serving.Load() {
			s.logger.Error("embedded S3 server stopped unexpectedly", "err", s.serveErr)
		}
	})
	select {
	case <-listening:
	case <-s.served:
		return s.serveErr
	}

	// The HTTP library ignores a shutdown before it begins to serve, which is shortly after it listens. The first
	// response shows that it serves.
	if _, err := s.Client().ListBuckets(ctx, &s3.ListBucketsInput{}); err != nil {
		return errors.Join(err, api.ShutDown())
	}
	s.api = api
	s.serving.Store(true)
	return nil
}

// Addr returns the TCP address that [Options.Listen] opened, or "".
func (s *Server) Addr() string { return s.addr }

// Close ends the server. It accepts no new requests. Running requests may finish until ctx is done or ten seconds have
// passed. Then Close closes idle connections, removes the socket and restores the working directory. The data is kept.
//
// After an error, requests may still be running, and the working directory is not restored because they need it. Call
// Close again to wait longer.
//
// The HTTP library of versitygw leaves two sleeping goroutines: its clock, once per process, and the cleaner of its
// worker pool, which ends within ten seconds.
func (s *Server) Close(ctx context.Context) error {
	s.stop.Do(func() {
		s.serving.Store(false)
		s.httpClient.CloseIdleConnections()
		panics.Go(func() {
			defer close(s.stopped)
			s.stopErr = s.api.ShutDown()
		})
	})
	select {
	case <-s.stopped:
	case <-ctx.Done():
		return fmt.Errorf("embedded S3: close: %w", ctx.Err())
	}
	if s.stopErr != nil {
		return fmt.Errorf("embedded S3: close: %w", s.stopErr)
	}
	<-s.served // serveErr only says that the listener is closed
	return s.release()
}

// release undoes what Start has done so far.
func (s *Server) release() error {
	if s.backend != nil {
		s.backend.Shutdown()
	}
	errs := []error{os.Chdir(s.workingDir), s.lock.release()}
	if s.socketDir != "" {
		errs = append(errs, os.RemoveAll(s.socketDir))
	}
	return errors.Join(errs...)
}

// resolvePort checks a host:port address. It replaces port 0 by a free port, because versitygw does not report the
// port that it got.
func resolvePort(ctx context.Context, address string) (string, error) {
	if address == "" {
		return "", nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil || port != "0" {
		return address, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
