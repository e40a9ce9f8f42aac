// Package serve runs a [server.Server] as a process: it reads and reloads the configuration file, writes the log, and
// stops on signals. The commands babelftp and babelftp-kubernetes share it.
package serve

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/reload"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/server"
)

// Options are what commands do differently.
type Options struct {
	// Version is the version of the program.
	Version string
	// Stdout receives the audit log if the configuration says so, and Stderr the log.
	Stdout, Stderr io.Writer
	// Accept returns an error for a valid configuration that the command does not serve, at the start and for each
	// reload.
	Accept func(*config.Config) error
	// Resources returns the source of custom resources. It is nil if there is none.
	Resources func(*config.Config, *slog.Logger) (server.ResourceSource, error)
}

// load reads the configuration.
func (o *Options) load(loader *config.Loader) (*config.Config, error) {
	cfg, err := loader.Load()
	if err == nil {
		err = o.Accept(cfg)
	}
	return cfg, err
}

// resources returns the source of custom resources, or nil.
func (o *Options) resources(cfg *config.Config, log *slog.Logger) (server.ResourceSource, error) {
	if o.Resources == nil {
		return nil, nil
	}
	return o.Resources(cfg, log)
}

// File serves the tenants of a configuration file until SIGTERM or SIGINT, and reloads the file when it changes and on
// SIGHUP.
func File(ctx context.Context, file string, opts Options) error {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP) // first of all, because an unhandled SIGHUP would end the process
	defer signal.Stop(hangUp)
	loader := config.NewLoader(file, os.Environ())
	load := func() (*config.Config, error) { return opts.load(loader) }
	cfg, err := load()
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(cfg.Log.Level)
	tail := admin.NewLogTail()
	log := NewLogger(io.MultiWriter(tail, opts.Stderr), cfg.Log.Format, level)
	ctx, now, stop := Signals(ctx)
	defer stop()
	var srv *server.Server
	watcher := reload.NewWatcher(reload.Watcher{
		Files: loader.Files, Changed: loader.Changed, Now: hangUp, Log: log,
		Reload: func(demanded bool) error {
			cause := server.ReloadFiles
			if demanded {
				cause = server.ReloadSignal
			}
			return srv.Reload(cause, load)
		},
	})
	resources, err := opts.resources(cfg, log)
	if err != nil {
		return err
	}
	srv, err = server.New(ctx, cfg, server.Options{
		Version: opts.Version, Logger: log, Tail: tail, LogLevel: level, Stdout: opts.Stdout, CheckFiles: watcher.Check,
		Resources: resources,
	})
	if err != nil {
		return err
	}
	return Until(ctx, now, srv, log, func() {
		log.Info("serving", "version", opts.Version, "tenants", len(cfg.Tenants), "users", cfg.UsersCount())
		panics.Go(func() { watcher.Run(ctx) })
	})
}

// NewLogger returns a logger that writes to w.
func NewLogger(w io.Writer, format config.LogFormat, level slog.Leveler) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: report.Escape}
	if format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
