package main

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/reload"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/server"
)

func newServeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [--config FILE]",
		Short: "Serve the tenants of a configuration",
		Long: "Serve the tenants of a configuration until SIGTERM or SIGINT. Then idle and new sessions get 421, and " +
			"running transfers have\n" +
			"drain_timeout to finish; a second signal ends them at once.\n\n" +
			"The configuration is reloaded when one of its files changes, and on SIGHUP. An invalid configuration " +
			"is rejected, and the previous one stays in use.",
		Example: "  babelftp serve --config /etc/babelftp/babelftp.yaml\n" +
			"  BABELFTP_LISTEN=:2121 babelftp serve --config babelftp.yaml",
		Args: noArguments,
	}
	file := addConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *file == "" {
			return errNoConfig(cmd)
		}
		hangUp := make(chan os.Signal, 1)
		signal.Notify(hangUp, syscall.SIGHUP) // first of all, because an unhandled SIGHUP would end the process
		defer signal.Stop(hangUp)
		loader := config.NewLoader(*file, os.Environ())
		cfg, err := loader.Load()
		if err != nil {
			return err
		}
		level := new(slog.LevelVar)
		level.Set(cfg.Log.Level)
		tail := admin.NewLogTail()
		log := newLogger(io.MultiWriter(tail, cmd.ErrOrStderr()), cfg.Log.Format, level)
		ctx, now, stop := stopSignals(cmd.Context())
		defer stop()
		var srv *server.Server
		watcher := reload.NewWatcher(reload.Watcher{
			Files: loader.Files, Changed: loader.Changed, Now: hangUp, Log: log,
			Reload: func(demanded bool) error {
				cause := server.ReloadFiles
				if demanded {
					cause = server.ReloadSignal
				}
				return srv.Reload(cause, loader.Load)
			},
		})
		srv, err = server.New(ctx, cfg, server.Options{
			Version: buildVersion(), Logger: log, Tail: tail, LogLevel: level, Stdout: cmd.OutOrStdout(),
			CheckFiles: watcher.Check,
		})
		if err != nil {
			return err
		}
		return serveUntil(ctx, now, srv, log, func() {
			log.Info("serving", "version", buildVersion(), "tenants", len(cfg.Tenants), "users", cfg.UsersCount())
			panics.Go(func() { watcher.Run(ctx) })
		})
	}
	return cmd
}

// newLogger returns a logger that writes to w.
func newLogger(w io.Writer, format config.LogFormat, level slog.Leveler) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: report.Escape}
	if format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
