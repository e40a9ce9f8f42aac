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

	"github.com/babelftp/babelftp/internal/base/clientcert"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/audit"
)

const (
	// maxConnections is how many connections there may be, with streams of events.
	maxConnections = 256
	// maxPerNetwork is how many of them one network may have, so that it leaves some to others. A browser has six at
	// most.
	maxPerNetwork = 64
)

// A Listener serves administrators. Its methods may be called by any goroutine.
type Listener struct {
	log        *slog.Logger
	server     *web.Server
	encryption *tls.Config
	gate       *gate
	files      atomic.Pointer[tlsFiles] // nil without TLS
}

// tlsFiles are what TLS needs.
type tlsFiles struct {
	certificate *certs.Files
	clients     *x509.CertPool // nil without
	required    bool           // whether clients must show a certificate
}

// NewListener makes a listener with an API and a page. The page gets what neither the API nor the login is asked for.
// The audit log, nil for none, gets the logins. A token, if not empty, lets the link /login?token=TOKEN log in one
// browser, once. NewListener opens no socket.
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

// A ListenerChange is the files and the passwords of another configuration.
type ListenerChange struct {
	listener  *Listener
	passwords *passwords // nil for none
	files     *tlsFiles  // nil without TLS
}

// Prepare reads the files of another configuration, and changes nothing. The address must be the same. The error says
// which file cannot be read.
func (l *Listener) Prepare(cfg config.Admin) (*ListenerChange, error) {
	c := &ListenerChange{listener: l}
	hashes, err := cfg.Administrators()
	if err != nil {
		return nil, fmt.Errorf("admin.users: %w", err)
	}
	if len(hashes) > 0 {
		if c.passwords, err = newPasswords(hashes); err != nil {
			return nil, err
		}
	}
	if cfg.TLS.CertFile == "" {
		return c, nil
	}
	c.files = &tlsFiles{required: c.passwords == nil}
	if c.files.certificate, err = certs.OpenFiles(cfg.TLS.CertFile, cfg.TLS.KeyFile, l.log); err != nil {
		return nil, fmt.Errorf("admin.tls: %w", err)
	}
	if c.files.clients, err = config.Authorities(cfg.TLS.ClientCAFile); err != nil {
		return nil, fmt.Errorf("admin.tls.client_ca_file: %w", err)
	}
	return c, nil
}

// Apply makes the change. Cookies and streams of events end when the passwords or the authorities change. A certificate
// of authorities that are gone is no login any more, also on a connection that is open.
func (c *ListenerChange) Apply() {
	c.listener.files.Store(c.files)
	var clients *x509.CertPool
	if c.files != nil {
		clients = c.files.clients
	}
	c.listener.gate.replace(c.passwords, c.files != nil, clients)
}

// Ends is when the certificate expires, the zero time without one.
func (l *Listener) Ends() (host string, at time.Time) {
	files := l.files.Load()
	if files == nil {
		return "", time.Time{}
	}
	return files.certificate.Ends()
}

// Serve answers until Close. The error is never nil.
func (l *Listener) Serve(listener net.Listener) error { return l.server.Serve(listener) }

// wrap puts TLS above a connection while there is a certificate. A reload may add it and take it away.
func (l *Listener) wrap(conn net.Conn) net.Conn {
	if l.files.Load() == nil {
		return conn
	}
	return tls.Server(conn, l.encryption)
}

var errNoTLS = errors.New("the configuration has no certificate any more")

// tlsConfig is that of a handshake.
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
		VerifyConnection: clientcert.CheckShown,
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
