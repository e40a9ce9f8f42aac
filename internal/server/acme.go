package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
)

// newACME returns the ACME client, or nil if the configuration has no tls.acme section.
func newACME(cfg *config.Config, issued func(error), log *slog.Logger) (*certs.ACME, error) {
	if !cfg.TLS.ACME.IsSet() {
		return nil, nil
	}
	return certs.NewACME(cfg.TLS.ACME, certs.ACMEOptions{Observe: issued, Logger: log})
}

// CheckACME checks the ACME folder; see [certs.ACME.Check].
func CheckACME(ctx context.Context, cfg *config.Config) (notes, warnings []string, err error) {
	m, err := newACME(cfg, nil, slog.New(slog.DiscardHandler))
	if m == nil || err != nil {
		return nil, nil, err
	}
	defer m.Stop()
	return m.Check(ctx, time.Now())
}
