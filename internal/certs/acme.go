package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3/acme"
	"go.uber.org/zap"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
)

const (
	// challengeTimeout limits the time that a connection for a challenge may take.
	challengeTimeout = 10 * time.Second
	// retryLoading is the time between attempts to load the certificates from the folder.
	retryLoading = time.Minute
	// protocol is the ALPN protocol name of TLS-ALPN-01 (RFC 8737, section 6.1).
	protocol = "acme-tls/1"
)

// ACMEOptions are the options of an ACME that are not in the configuration. The zero value is valid.
type ACMEOptions struct {
	// Observe is called with nil after a certificate was issued, and with an error if issuing one failed.
	Observe func(err error)

	// Storage stores accounts, certificates and challenges instead of the configured folder, unless it is nil.
	Storage certmagic.Storage

	// Logger receives log messages. By default they are discarded.
	Logger *slog.Logger

	// CheckInterval is the interval at which certificates are checked for renewal. The default is ten minutes.
	CheckInterval time.Duration
}

// An ACME obtains and renews the certificates for the hosts of a configuration from a certificate authority (RFC
// 8555).
//
// It answers HTTP-01 and TLS-ALPN-01 (RFC 8737) challenges on addresses of its own, because an FTP server does not
// listen on ports 80 and 443. The account, the keys and the certificates are stored in a folder or in the shared state.
// Servers that share it use the same certificates, take turns renewing them, and answer each other's challenges.
//
// The protocol is implemented by certmagic, which retries if the authority fails. Existing certificates stay in use.
type ACME struct {
	cfg   config.ACME
	opts  ACMEOptions
	roots *x509.CertPool // nil: the roots of the system

	storage certmagic.Storage
	cache   *certmagic.Cache
	magic   *certmagic.Config

	mu    sync.Mutex
	hosts []string

	listeners []net.Listener
	servers   []*web.Server
	work      context.Context    // nil before Start
	stop      context.CancelFunc // cancels work
	stopOnce  sync.Once
}

// NewACME returns an ACME for a valid configuration. It reads the CA file, but sends no request.
func NewACME(cfg config.ACME, opts ACMEOptions) (*ACME, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Observe == nil {
		opts.Observe = func(error) {}
	}
	roots, err := config.Trusted(cfg.CAFile)
	if err != nil {
		return nil, err
	}
	m := &ACME{cfg: cfg, hosts: cfg.Hosts, opts: opts, roots: roots, storage: opts.Storage, stop: func() {}}
	if m.storage == nil {
		m.storage = &certmagic.FileStorage{Path: cfg.Folder}
	}
	logger := zap.New(&core{log: opts.Logger})
	m.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return m.magic, nil },
		RenewCheckInterval: opts.CheckInterval,
		Logger:             logger,
	})
	m.magic = certmagic.New(m.cache, certmagic.Config{
		Storage:           m.storage,
		OCSP:              certmagic.OCSPConfig{DisableStapling: true},
		DefaultServerName: cfg.Hosts[0],
		OnEvent:           m.event,
		Logger:            logger,
	})
	return m, nil
}

// Hosts returns the host names whose certificates are managed.
func (m *ACME) Hosts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hosts
}

// SetHosts replaces the host names. Missing certificates are obtained in the background; certificates of removed
// hosts are no longer renewed.
func (m *ACME) SetHosts(hosts []string) {
	m.mu.Lock()
	before := m.hosts
	m.hosts = hosts
	work := m.work
	m.mu.Unlock()
	if work == nil || slices.Equal(before, hosts) {
		return
	}
	var removed []certmagic.SubjectIssuer
	for _, host := range before {
		if !slices.Contains(hosts, host) {
			removed = append(removed, certmagic.SubjectIssuer{Subject: host})
		}
	}
	m.cache.RemoveManaged(removed)
	panics.Go(func() { m.manage(work) })
}

// Certificate returns the certificate for a host, or nil if it was not issued yet. It makes no request.
func (m *ACME) Certificate(host string) *tls.Certificate {
	var latest *tls.Certificate
	for _, c := range m.cache.AllMatchingCertificates(host) {
		if c.Leaf != nil && slices.Contains(c.Names, host) &&
			(latest == nil || c.Leaf.NotAfter.After(latest.Leaf.NotAfter)) {
			latest = &c.Certificate
		}
	}
	return latest
}

// event logs and observes the result of requesting a certificate.
func (m *ACME) event(_ context.Context, name string, data map[string]any) error {
	log := m.opts.Logger.With("host", data["identifier"], "renewal", data["renewal"])
	switch name {
	case "cert_obtained":
		log.Info("ACME certificate obtained")
		m.opts.Observe(nil)
	case "cert_failed":
		err, _ := data["error"].(error)
		host, _ := data["identifier"].(string)
		log = log.With("hint", hint(err), "err", err)
		if m.Certificate(host) != nil {
			log.Error("ACME certificate not obtained; the previous one stays in use")
		} else {
			log.Error("ACME certificate not obtained; TLS fails until it is")
		}
		m.opts.Observe(errors.Join(errors.New("no certificate was issued"), err))
	}
	return nil
}

// hint returns what to do if a certificate was not issued, or an empty string if the response of the authority says
// it.
func hint(err error) string {
	problem, answered := errors.AsType[acme.Problem](err)
	switch {
	case !answered:
		return "check that the server can reach tls.acme.directory, and that ca_file contains its CA if the system does " +
			"not trust it"
	case slices.Contains([]string{
		acme.ProblemTypeConnection, acme.ProblemTypeDNS, acme.ProblemTypeTLS, acme.ProblemTypeUnauthorized,
		acme.ProblemTypeIncorrectResponse,
	}, problem.Type):
		return "check that the host name resolves to this server, and that the authority can reach port 80 or 443"
	}
	return ""
}

// A Listen opens the address in the configuration key. It returns nil if the address is empty.
type Listen func(ctx context.Context, key, address string) (net.Listener, error)

// Start opens the listeners for challenges, and then obtains certificates in the background until Stop is called. It
// fails if listen fails.
func (m *ACME) Start(ctx context.Context, listen Listen) error {
	challenges, err := listen(ctx, "tls.acme.http_listen", m.cfg.HTTPListen)
	if err != nil {
		return err
	}
	m.keep(challenges)
	alpn, err := listen(ctx, "tls.acme.tls_listen", m.cfg.TLSListen)
	if err != nil {
		m.Stop()
		return err
	}
	m.keep(alpn)
	ctx, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	issuer := m.issuer()
	issuer.DisableHTTPChallenge, issuer.DisableTLSALPNChallenge = challenges == nil, alpn == nil
	m.magic.Issuers = []certmagic.Issuer{issuer}
	if challenges != nil {
		issuer.ListenHost, issuer.AltHTTPPort = hostPort(challenges)
		server := m.server(issuer.HTTPChallengeHandler(http.NotFoundHandler()), nil)
		panics.Go(func() { _ = server.Serve(challenges) }) // until Stop
	}
	if alpn != nil {
		issuer.ListenHost, issuer.AltTLSALPNPort = hostPort(alpn)
		handshakes := m.handshakes()
		server := m.server(http.NotFoundHandler(), func(conn net.Conn) net.Conn { return tls.Server(conn, handshakes) })
		panics.Go(func() { _ = server.Serve(alpn) }) // until Stop
	}
	m.mu.Lock()
	m.work = ctx
	m.mu.Unlock()
	panics.Go(func() { m.manage(ctx) })
	return nil
}

// issuer returns the configured certificate authority.
func (m *ACME) issuer() *certmagic.ACMEIssuer {
	issuer := certmagic.NewACMEIssuer(m.magic, certmagic.ACMEIssuer{
		CA: m.cfg.Directory, Agreed: true, TrustedRoots: m.roots, Logger: m.magic.Logger,
	})
	if keyID, hmacKey, ok := m.cfg.ExternalAccount(); ok {
		issuer.ExternalAccount = &acme.EAB{KeyID: keyID, MACKey: hmacKey}
	}
	return issuer
}

func (m *ACME) keep(l net.Listener) {
	if l != nil {
		m.listeners = append(m.listeners, l)
	}
}

// server returns a server for challenges that runs until Stop. wrap starts TLS on a connection; it is nil for HTTP. A
// TLS-ALPN-01 challenge ends with the handshake.
func (m *ACME) server(handler http.Handler, wrap func(net.Conn) net.Conn) *web.Server {
	s := web.NewServer(handler, web.Options{
		Timeout: challengeTimeout, Wrap: wrap, Log: m.opts.Logger,
		Protocols: map[string]func(*tls.Conn){protocol: func(conn *tls.Conn) { _ = conn.Close() }},
	})
	m.servers = append(m.servers, s)
	return s
}

// hostPort returns the address of a listener for challenges. certmagic finds this address in use, and leaves the
// challenges to the listener.
func hostPort(l net.Listener) (host string, port int) {
	address := l.Addr().(*net.TCPAddr)
	return address.IP.String(), address.Port
}

// manage loads the certificates of all hosts and lets certmagic obtain the missing ones.
func (m *ACME) manage(ctx context.Context) {
	for {
		err := panics.Catch(func() error { return m.magic.ManageAsync(ctx, m.Hosts()) })
		if err == nil || ctx.Err() != nil {
			return
		}
		m.opts.Logger.Error("loading ACME certificates failed; check that the server can write to the folder or the state",
			"storage", m.storage, "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryLoading):
		}
	}
}

// handshakes returns the TLS configuration for TLS-ALPN-01, where the handshake presents the certificate of the
// challenge.
func (m *ACME) handshakes() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{protocol},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if len(hello.SupportedProtos) != 1 || hello.SupportedProtos[0] != protocol {
				return nil, errors.New("only ACME challenges are accepted")
			}
			if err := netaddr.CheckServerName(hello); err != nil {
				return nil, err
			}
			return m.magic.GetCertificate(hello)
		},
	}
}

// Stop closes the listeners and ends the background work. Certificates remain available.
func (m *ACME) Stop() {
	m.stopOnce.Do(func() {
		m.stop()
		m.cache.Stop()
		for _, s := range m.servers {
			_ = s.Close()
		}
		for _, l := range m.listeners {
			_ = l.Close()
		}
	})
}
