package server

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/audit"
)

// socketConnections limits the connections of the admin socket, which all belong to the one user with access to it.
const socketConnections = 256

// An adminAccess holds the listeners for administrators.
type adminAccess struct {
	log    *slog.Logger
	socket *web.Server
	tcp    *admin.Listener // nil without admin.listen
	bound  net.Listener    // listener of tcp, nil before start

	api     *admin.Handler
	history *admin.Recorder
	peers   *admin.Peers // nil without other replicas
}

// recentEvents returns a buffer for the last audit events, which administrators can search. It is nil if they can
// search a file, or if administrators have no access.
func recentEvents(cfg *config.Config) *audit.Recent {
	if cfg.AdminSocket == "" && cfg.Admin.Listen == "" || cfg.Audit.File != "" && !cfg.Audit.Stdout() {
		return nil
	}
	return audit.NewRecent()
}

// newAdmin creates the admin socket and the listener for administrators.
func (s *Server) newAdmin(cfg *config.Config, recent *audit.Recent) (*adminAccess, error) {
	a := &adminAccess{log: s.log, history: admin.NewRecorder(s.metrics.Totals), peers: s.newPeers(cfg)}
	bundle := func() *i18n.Bundle { return s.active.Load().bundle }
	a.api = admin.NewHandler(admin.Options{
		Source: admin.NewOverview(s.control, admin.Parts{
			Version: s.opts.Version, Replica: s.ports.number, Replicas: max(1, cfg.Cluster.Replicas),
			Started: time.Now(), Loaded: s.configVersion, Health: s.health,
			Buckets: s.buckets, Registry: s.tenants, Certificates: s.certificates, Listener: a.certificate,
			Refusals: s.metrics.RefusalsByLimit,
		}),
		Accounts: accounts{s},
		Bans:     s.bans, Debug: s.debug,
		Tail: cmp.Or(s.opts.Tail, admin.NewLogTail()), Bundle: bundle, Audit: s.auditLog,
		Unaudited: func() bool { return s.audit.Refuses(report.Owner{}) }, Log: s.log,
		Search: audit.NewSearcher(cfg.Audit, recent), History: a.history, Problems: s.problems, Peers: a.peers,
		Configuration: func(tenant string) (string, bool, error) { return s.active.Load().cfg.Effective(tenant) },
	})
	a.socket = web.NewServer(
		a.api, web.Options{Log: s.log, PerNetwork: socketConnections, Connections: socketConnections,
			Connected: admin.WithPeer})
	if cfg.Admin.Listen == "" {
		return a, nil
	}
	var err error
	a.tcp, err = admin.NewListener(cfg.Admin, a.api, admin.PageHandler(bundle), s.auditLog, s.log, s.opts.AdminToken)
	return a, err
}

// newPeers returns the other replicas, or nil if there are none. They prove that they belong together with a key that
// is derived from state.keys or, without state, from admin.users.
func (s *Server) newPeers(cfg *config.Config) *admin.Peers {
	if !cfg.Cluster.IsSet() {
		return nil
	}
	return admin.NewPeers(admin.PeerOptions{
		Number: s.ports.number, Count: cfg.Cluster.Replicas, Dial: s.ports.cluster.Ask, Log: s.log,
		Secret: func() ([]byte, error) {
			current := s.active.Load().cfg
			if current.State.IsSet() {
				ring, err := current.State.Ring()
				if err != nil {
					return nil, err
				}
				return ring.Derive("replicas")
			}
			if current.Admin.Users.Empty() {
				return nil, errNoSecret
			}
			return []byte(current.Admin.Users.Reveal()), nil
		},
	})
}

var errNoSecret = errors.New(
	"replicas need a common secret to ask each other: set state, or admin.users with the same lines on all replicas")

// watch records the history and the problems until ctx ends.
func (a *adminAccess) watch(ctx context.Context) {
	panics.Go(func() { a.history.Run(ctx) })
	a.api.WatchProblems(ctx)
}

// configVersion returns the hash of the current configuration, and the time when it was read.
func (s *Server) configVersion() (string, time.Time) {
	a := s.active.Load()
	hash := a.cfg.Hash()
	return hex.EncodeToString(hash[:]), a.at
}

// start opens the socket and the listener.
func (a *adminAccess) start(ctx context.Context, cfg *config.Config) (err error) {
	a.peers.Start(a.api)
	if path := cfg.AdminSocket; path != "" {
		switch l, err := admin.Listen(ctx, path); {
		case err == nil:
			panics.Go(func() { a.serve(a.socket.Serve, l) })
		case cfg.OptionalSocket:
			a.log.Warn("admin socket not opened, commands cannot reach the server; set admin_socket, or \"\" to disable it", "socket", path, "err", err)
		default:
			return &ListenError{Key: "admin_socket", Address: path, Err: err}
		}
	}
	if a.tcp == nil {
		return nil
	}
	if a.bound, err = listenTCP(ctx, "admin.listen", cfg.Admin.Listen, a.log); err != nil {
		return err
	}
	panics.Go(func() { a.serve(a.tcp.Serve, a.bound) })
	return nil
}

func (a *adminAccess) serve(serve func(net.Listener) error, l net.Listener) {
	if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
		a.log.Error("admin listener stopped unexpectedly", "address", l.Addr().String(), "err", err)
	}
}

// prepare calls [admin.Listener.Prepare]. It returns nil without admin.listen.
func (a *adminAccess) prepare(cfg *config.Config) (*admin.ListenerChange, error) {
	if a.tcp == nil {
		return nil, nil
	}
	return a.tcp.Prepare(cfg.Admin)
}

// close ends all connections, including event streams.
func (a *adminAccess) close() {
	_ = a.socket.Close()
	a.peers.Stop()
	if a.tcp != nil {
		a.tcp.Close()
	}
}

// certificate returns the first host name of the listener's certificate, and its expiry.
func (a *adminAccess) certificate() (host string, ends time.Time) {
	if a.tcp == nil {
		return "", time.Time{}
	}
	return a.tcp.CertificateExpiry()
}

// AdminAddr returns the address for administrators, or nil without admin.listen.
func (s *Server) AdminAddr() net.Addr {
	if s.admin.bound == nil {
		return nil
	}
	return s.admin.bound.Addr()
}
