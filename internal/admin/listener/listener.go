// Package listener serves administrators over TCP: a page, and the API of package admin.
//
// [New] makes a [Listener] of the section admin of the configuration. Anybody who reaches the address may read the page and its files. What is below
// [admin.Root] needs a login:
//
//   - "Authorization: Bearer TOKEN", for scripts (RFC 6750).
//   - A cookie, for browsers. POST /login exchanges the form field "token" for it, with status 204, and 401 for a wrong token. GET
//     /login?token=TOKEN does so too, and redirects to the page. POST /logout removes the cookie.
//   - A certificate of tls.client_ca_file.
//
// Requests that other sites make browsers send are refused. So are those for a name that is not this machine's, where there is no TLS (DNS rebinding).
package listener

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/certificates"
	"github.com/babelftp/babelftp/internal/config/administration"
	"github.com/babelftp/babelftp/internal/config/encryption"
)

const (
	// readTimeout is how long a client may take to send a request.
	readTimeout = 10 * time.Second
	// writeTimeout is how long an answer may take. The API asks S3 for some.
	writeTimeout = time.Minute
	// idleTimeout is how long a connection stays open between requests.
	idleTimeout = time.Minute
	// maxHeader is how many bytes the header of a request has at most.
	maxHeader = 16 << 10
)

// A Listener serves administrators. Its methods may be called by any goroutine.
type Listener struct {
	log    *slog.Logger
	server *http.Server
	gate   *gate
	files  atomic.Pointer[tlsFiles] // nil without TLS
}

// tlsFiles are what TLS needs.
type tlsFiles struct {
	cfg         administration.AdminTLS
	certificate *certificates.Files
	clients     *x509.CertPool // nil without
	required    bool           // whether clients must show a certificate
}

// New makes a listener with an API and a page. The page gets what neither the API nor the login is asked for. New opens no socket.
func New(cfg administration.Admin, api, page http.Handler, log *slog.Logger) (*Listener, error) {
	l := &Listener{log: log, gate: newGate()}
	apply, err := l.Prepare(cfg)
	if err != nil {
		return nil, err
	}
	apply()
	l.server = &http.Server{
		Handler:           l.gate.handler(api, page),
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog:  slog.NewLogLogger(log.Handler(), slog.LevelDebug), // strangers fill it
		Protocols: new(http.Protocols),
	}
	l.server.Protocols.SetHTTP1(true) // so that few connections are few requests
	return l, nil
}

// Prepare reads the files of another configuration, which apply uses from then on. The address must be the same. The error says which file cannot be
// read. Cookies and streams of events end when the token or the authorities change. A certificate of authorities that are gone is no login any more,
// also on a connection that is open.
func (l *Listener) Prepare(cfg administration.Admin) (apply func(), err error) {
	var next *tlsFiles
	if cfg.TLS.CertFile != "" {
		next = &tlsFiles{cfg: cfg.TLS, required: cfg.Token.Empty()}
		if next.certificate, err = certificates.OpenFiles(cfg.TLS.CertFile, cfg.TLS.KeyFile, l.log); err != nil {
			return nil, fmt.Errorf("admin.tls: %w", err)
		}
		if next.clients, err = encryption.Authorities(cfg.TLS.ClientCAFile); err != nil {
			return nil, fmt.Errorf("admin.tls.client_ca_file: %w", err)
		}
	}
	return func() {
		l.files.Store(next)
		var clients *x509.CertPool
		if next != nil {
			clients = next.clients
		}
		l.gate.replace(cfg.Token.Reveal(), next != nil, clients)
	}, nil
}

// Ends is when the certificate ends, the zero time without one.
func (l *Listener) Ends() (host string, at time.Time) {
	files := l.files.Load()
	if files == nil {
		return "", time.Time{}
	}
	return files.certificate.Ends()
}

// Serve answers until Close. The error is never nil.
func (l *Listener) Serve(listener net.Listener) error {
	encryption := &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: l.tlsConfig}
	return l.server.Serve(&encrypted{newLimited(listener), l, encryption})
}

// encrypted accepts connections under TLS while there is a certificate. A reload may add it and take it away.
type encrypted struct {
	net.Listener
	of  *Listener
	tls *tls.Config
}

// Accept implements [net.Listener].
func (e *encrypted) Accept() (net.Conn, error) {
	conn, err := e.Listener.Accept()
	if err != nil || e.of.files.Load() == nil {
		return conn, err
	}
	return tls.Server(conn, e.tls), nil
}

var errNoTLS = errors.New("the configuration has no certificate any more")

// tlsConfig is that of a handshake.
func (l *Listener) tlsConfig(*tls.ClientHelloInfo) (*tls.Config, error) {
	files := l.files.Load()
	if files == nil {
		return nil, errNoTLS
	}
	certificate, err := files.certificate.Current()
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}, SessionTicketsDisabled: true}
	if files.clients != nil {
		cfg.ClientCAs, cfg.ClientAuth = files.clients, tls.VerifyClientCertIfGiven
		if files.required {
			cfg.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	return cfg, nil
}

// Close ends all connections.
func (l *Listener) Close() {
	l.gate.end()
	_ = l.server.Close()
}
