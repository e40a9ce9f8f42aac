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
	// challengeTimeout is how long the connection of a challenge may take.
	challengeTimeout = 10 * time.Second
	// retryLoading is the time between two attempts to load the certificates from a folder that cannot be read.
	retryLoading = time.Minute
	// protocol is how a client names TLS-ALPN-01 (RFC 8737, section 6.1).
	protocol = "acme-tls/1"
)

// ACMEOptions is what an ACME needs beyond the configuration. The zero value is the default.
type ACMEOptions struct {
	// Observe is called when the authority has issued a certificate for a host, and with an error when it has not.
	Observe func(err error)

	// Logger gets what happens. The default discards it.
	Logger *slog.Logger

	// CheckInterval is the time between two looks at which certificates are to be renewed. The default is ten minutes.
	CheckInterval time.Duration
}

// An ACME obtains the certificates of the hosts of a configuration from an authority (RFC 8555), and renews them.
//
// It answers the challenges HTTP-01 and TLS-ALPN-01 (RFC 8737) on addresses of its own, because an FTP server has no
// port 80 or 443. The account, the keys and the certificates lie in a folder. Servers that share it share the
// certificates, renew them one after another, and answer the challenges of each other.
//
// certmagic speaks the protocol. Where the authority refuses or does not answer, the certificates before stay, and
// certmagic tries again.
type ACME struct {
	cfg   config.ACME
	opts  ACMEOptions
	roots *x509.CertPool // nil: those of the system

	storage certmagic.Storage
	cache   *certmagic.Cache
	magic   *certmagic.Config

	mu    sync.Mutex
	hosts []string

	listeners []net.Listener
	servers   []*web.Server
	work      context.Context    // nil before Start
	stop      context.CancelFunc // of the work
	stopOnce  sync.Once
}

// NewACME makes an ACME of a valid section. It reads the authorities of the directory, and sends no request.
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
	m := &ACME{
		cfg: cfg, hosts: cfg.Hosts, opts: opts, roots: roots, storage: &certmagic.FileStorage{Path: cfg.Folder},
		stop: func() {},
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

// Hosts are the names that have certificates, or will.
func (m *ACME) Hosts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hosts
}

// SetHosts replaces the names. The ACME obtains the certificates that are missing in the background, and no longer
// renews those of other names.
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

// Certificate is the certificate of a host, nil as long as there is none. It makes no request.
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

// event counts what the authority has done.
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
			log.Error("ACME certificate not obtained, and the one before stays in use")
		} else {
			log.Error("ACME certificate not obtained, and TLS fails until it is")
		}
		m.opts.Observe(errors.Join(errors.New("no certificate was issued"), err))
	}
	return nil
}

// hint is what to do about a certificate that the authority has not issued, empty where its answer says that.
func hint(err error) string {
	problem, answered := errors.AsType[acme.Problem](err)
	switch {
	case !answered:
		return "see that the server reaches tls.acme.directory, and that ca_file has its authority if it is none of the " +
			"system's"
	case slices.Contains([]string{
		acme.ProblemTypeConnection, acme.ProblemTypeDNS, acme.ProblemTypeTLS, acme.ProblemTypeUnauthorized,
		acme.ProblemTypeIncorrectResponse,
	}, problem.Type):
		return "see that the name of the host leads here, and that the authority reaches it on port 80 or 443"
	}
	return ""
}

// A Listen opens an address that a key of the configuration names, nil for an empty one.
type Listen func(ctx context.Context, key, address string) (net.Listener, error)

// Start opens the listeners of the challenges, and then obtains the certificates in the background until Stop. The
// error is that of listen.
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
		panics.Go(func() { _ = server.Serve(challenges) }) // ends with Stop
	}
	if alpn != nil {
		issuer.ListenHost, issuer.AltTLSALPNPort = hostPort(alpn)
		handshakes := m.handshakes()
		server := m.server(http.NotFoundHandler(), func(conn net.Conn) net.Conn { return tls.Server(conn, handshakes) })
		panics.Go(func() { _ = server.Serve(alpn) }) // ends with Stop
	}
	m.mu.Lock()
	m.work = ctx
	m.mu.Unlock()
	panics.Go(func() { m.manage(ctx) })
	return nil
}

// issuer is the authority.
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

// server answers challenges until Stop. wrap is nil without TLS, and nothing follows the handshake of a challenge.
func (m *ACME) server(handler http.Handler, wrap func(net.Conn) net.Conn) *web.Server {
	s := web.NewServer(handler, web.Options{
		Timeout: challengeTimeout, Wrap: wrap, Log: m.opts.Logger,
		Protocols: map[string]func(*tls.Conn){protocol: func(conn *tls.Conn) { _ = conn.Close() }},
	})
	m.servers = append(m.servers, s)
	return s
}

// hostPort is where certmagic finds that the challenges are answered already.
func hostPort(l net.Listener) (host string, port int) {
	address := l.Addr().(*net.TCPAddr)
	return address.IP.String(), address.Port
}

// manage loads the certificates of all hosts, and has certmagic obtain those that are missing.
func (m *ACME) manage(ctx context.Context) {
	for {
		err := panics.Catch(func() error { return m.magic.ManageAsync(ctx, m.Hosts()) })
		if err == nil || ctx.Err() != nil {
			return
		}
		m.opts.Logger.Error("ACME certificates cannot be loaded; see that the server may write in the folder",
			"folder", m.cfg.Folder, "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryLoading):
		}
	}
}

// handshakes is how TLS-ALPN-01 is answered: the handshake shows the certificate of the challenge.
func (m *ACME) handshakes() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{protocol},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if len(hello.SupportedProtos) != 1 || hello.SupportedProtos[0] != protocol {
				return nil, errors.New("only challenges of ACME are answered here")
			}
			if err := netaddr.CheckServerName(hello); err != nil {
				return nil, err
			}
			return m.magic.GetCertificate(hello)
		},
	}
}

// Stop ends the work and closes the listeners. The certificates stay.
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
