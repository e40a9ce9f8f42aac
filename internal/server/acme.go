package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/state"
)

// newACME returns the ACME client, or nil if the configuration has no tls.acme section. Certificates are stored in the
// shared state, unless it is nil or the configuration names a folder.
func newACME(cfg *config.Config, shared *sharedState, issued func(error), log *slog.Logger) (*certs.ACME, error) {
	if !cfg.TLS.ACME.IsSet() {
		return nil, nil
	}
	opts := certs.ACMEOptions{Observe: issued, Logger: log}
	if shared != nil && cfg.TLS.ACME.Folder == "" {
		opts.Storage = state.NewCertificates(shared.store)
	}
	return certs.NewACME(cfg.TLS.ACME, opts)
}

// CheckStateACME checks the certificates in the shared state; see [certs.ACME.Check]. It checks nothing if the
// certificates are elsewhere.
func CheckStateACME(ctx context.Context, cfg *config.Config, shared *state.Store) (notes, warnings []string, err error) {
	if cfg.TLS.ACME.Folder != "" {
		return nil, nil, nil
	}
	m, err := newACME(cfg, &sharedState{store: shared}, nil, slog.New(slog.DiscardHandler))
	if m == nil || err != nil {
		return nil, nil, err
	}
	defer m.Stop()
	return m.Check(ctx, time.Now())
}

// CheckACME checks the ACME folder; see [certs.ACME.Check].
func CheckACME(ctx context.Context, cfg *config.Config) (notes, warnings []string, err error) {
	if cfg.State.IsSet() && cfg.TLS.ACME.Folder == "" {
		return nil, nil, nil // without --probe, nothing is read from S3
	}
	m, err := newACME(cfg, nil, nil, slog.New(slog.DiscardHandler))
	if m == nil || err != nil {
		return nil, nil, err
	}
	defer m.Stop()
	return m.Check(ctx, time.Now())
}
