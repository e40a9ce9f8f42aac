package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/babelftp/babelftp/internal/acme"
	"github.com/babelftp/babelftp/internal/acme/store"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/s3client"
	"github.com/babelftp/babelftp/internal/s3client/transport"
)

// newACME makes what obtains certificates, nil where the configuration has no section for it.
func newACME(cfg *config.Config, clients *s3client.Factory, issued func(error), log *slog.Logger) (*acme.Manager, error) {
	section := cfg.TLS.ACME
	if !section.Given() {
		return nil, nil
	}
	opts := acme.Options{Observe: issued, Logger: log}
	if section.Storage.Bucket != "" {
		client, err := clients.Server(cfg.S3)
		if err != nil {
			return nil, fmt.Errorf("tls.acme.storage: write s3.region, or set AWS_REGION: %w", err)
		}
		opts.Storage = store.New(client, section.Storage.Bucket, section.Storage.Prefix, log)
	}
	return acme.New(section, opts)
}

// prepareACME returns a client for the storage of ACME, nil where that is no bucket.
func (s *Server) prepareACME(cfg *config.Config) (client store.Client, err error) {
	if s.acme == nil || cfg.TLS.ACME.Storage.Bucket == "" {
		return nil, nil
	}
	return s.factory.Server(cfg.S3)
}

// CheckACME looks at the storage of ACME: see [acme.Manager.Check]. It asks S3 for a bucket only if it may. Of the options only AWS counts.
func CheckACME(ctx context.Context, cfg *config.Config, opts Options, asksS3 bool) (notes, warnings []string, err error) {
	if !cfg.TLS.ACME.Given() || cfg.TLS.ACME.Storage.Bucket != "" && !asksS3 {
		return nil, nil, nil
	}
	log := slog.New(slog.DiscardHandler)
	if opts.AWS == nil {
		if opts.AWS, err = transport.Load(ctx, log); err != nil {
			return nil, nil, err
		}
	}
	m, err := newACME(cfg, s3client.NewFactory(opts.AWS, nil, log), nil, log)
	if err != nil {
		return nil, nil, err
	}
	defer m.Stop()
	return m.Check(ctx, time.Now())
}
