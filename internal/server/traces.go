package server

import (
	"fmt"
	"log/slog"

	"github.com/babelftp/babelftp/internal/config/destination"
	"github.com/babelftp/babelftp/internal/config/encryption"
	"github.com/babelftp/babelftp/internal/tracing"
)

// newTraces returns nil where the configuration asks for no traces.
func newTraces(cfg destination.Traces, version string, log *slog.Logger) (*tracing.Tracer, error) {
	if cfg.Endpoint == "" {
		return nil, nil
	}
	header, err := cfg.Header()
	if err != nil {
		return nil, fmt.Errorf("traces.headers: %w", err)
	}
	authorities, err := encryption.Authorities(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("traces.ca_file: %w", err)
	}
	return tracing.New(tracing.Options{
		Endpoint: cfg.Endpoint, Header: header, Authorities: authorities, Sample: float64(cfg.Sample), Version: version, Log: log,
	}), nil
}
