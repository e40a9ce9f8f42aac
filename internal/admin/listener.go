package admin

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

	"github.com/babelftp/babelftp/internal/admin/oidc"
	"github.com/babelftp/babelftp/internal/base/clientcert"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/audit"
)

const (
	// maxConnections limits the connections, including streams of events.
	maxConnections = 256
	// maxPerNetwork limits the connections of one network, so that it cannot take all of them. A browser
	// opens at most six.
	maxPerNetwork = 64
)

// A Listener serves the API and the page over TCP. Its methods are safe for concurrent use.
type Listener struct {
	log        *slog.Logger
	server     *web.Server
	encryption *tls.Config
	gate       *gate
	files      atomic.Pointer[tlsFiles] // nil without TLS
}

// tlsFiles holds the certificates of a [Listener].
type tlsFiles struct {
	certificate *certs.Files
	clients     *x509.CertPool // authorities of client certificates; nil for none
	required    bool           // clients must show a certificate, the only way to log in
}

// NewListener returns a listener that serves an API, a page and the login. The page gets all requests that
// are neither for the API nor for the login. Logins are written to the audit log unless it is nil. A token
// that is not empty lets one browser log in once with /login?token=TOKEN. NewListener does not open a socket.
func NewListener(
	cfg config.Admin, api, page http.Handler, audit *audit.Log, log *slog.Logger, token string,
) (*Listener, error) {
	l := &Listener{log: log, gate: newGate(audit, log, token)}
	first, err := l.Prepare(cfg)
	if err != nil {
		return nil, err
	}
	first.Apply()
	l.encryption = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: l.tlsConfig}
	l.server = web.NewServer(
		l.gate.handler(
			api, page), web.Options{Connections: maxConnections, PerNetwork: maxPerNetwork, Wrap: l.wrap, Log: log})
	return l, nil
}

// A ListenerChange holds the certificates and passwords of a new configuration.
type ListenerChange struct {
	listener *Listener
	access   access
	files    *tlsFiles // nil without TLS
}

// Prepare reads the files of a new configuration without applying it. The error names the file that cannot be
// read. The address cannot change.
func (l *Listener) Prepare(cfg config.Admin) (*ListenerChange, error) {
	c := &ListenerChange{listener: l, access: access{roles: cfg.Roles}}
	hashes, err := cfg.Administrators()
	if err != nil {
		return nil, fmt.Errorf("admin.users: %w", err)
	}
	if len(hashes) > 0 {
		if c.access.passwords, err = newPasswords(hashes); err != nil {
			return nil, err
		}
	}
	if cfg.OIDC.IsSet() {
		if c.access.oidc, err = oidc.New(cfg.OIDC); err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
	}
	if cfg.TLS.CertFile == "" {
		return c, nil
	}
	c.access.tls, c.files = true, &tlsFiles{required: c.access.passwords == nil && c.access.oidc == nil}
	if c.files.certificate, err = certs.OpenFiles(cfg.TLS.CertFile, cfg.TLS.KeyFile, l.log); err != nil {
		return nil, fmt.Errorf("admin.tls: %w", err)
	}
	if c.files.clients, err = config.Authorities(cfg.TLS.ClientCAFile); err != nil {
		return nil, fmt.Errorf("admin.tls.client_ca_file: %w", err)
	}
	c.access.clients = c.files.clients
	return c, nil
}

// Apply puts the new configuration into effect. If it lets other people in or changes a role, all browser
// logins and streams of events end. Certificates of removed authorities become invalid on open connections
// too.
func (c *ListenerChange) Apply() {
	c.listener.files.Store(c.files)
	c.listener.gate.replace(c.access)
}

// CertificateExpiry returns the first name in the certificate and when it expires, or the zero time if there is no
// certificate.
func (l *Listener) CertificateExpiry() (host string, at time.Time) {
	files := l.files.Load()
	if files == nil {
		return "", time.Time{}
	}
	return files.certificate.Expiry()
}

// Serve accepts connections on listener until Close. It always returns a non-nil error.
func (l *Listener) Serve(listener net.Listener) error { return l.server.Serve(listener) }

// wrap adds TLS to a connection if there is a certificate. A reload may add or remove the certificate.
func (l *Listener) wrap(conn net.Conn) net.Conn {
	if l.files.Load() == nil {
		return conn
	}
	return tls.Server(conn, l.encryption)
}

var errNoTLS = errors.New("the configuration no longer has a certificate")

// tlsConfig returns the configuration for one handshake.
func (l *Listener) tlsConfig(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if err := netaddr.CheckServerName(hello); err != nil {
		return nil, err
	}
	files := l.files.Load()
	if files == nil {
		return nil, errNoTLS
	}
	certificate, err := files.certificate.Current()
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}, SessionTicketsDisabled: true,
		VerifyConnection: clientcert.CheckSize,
	}
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
