package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/logline"
	"github.com/babelftp/babelftp/internal/server"
)

func newServeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Serve the tenants of a configuration",
		Long: "Serve the tenants of a configuration until SIGTERM or SIGINT. Then idle sessions and new ones get 421, and running transfers may end\n" +
			"for the time of drain_timeout; a second signal cuts them. A bucket that cannot be used keeps out the users of its tenant, until\n" +
			"it can.\n\n" +
			"Any single value of the configuration can come from a variable: BABELFTP_S3_ACCESS_KEY_ID for access_key_id under s3, or\n" +
			"BABELFTP_S3_ACCESS_KEY_ID_FILE for the file that holds it.",
		Example: "  babelftp serve --config /etc/babelftp/babelftp.yaml\n" +
			"  BABELFTP_LISTEN=:2121 babelftp serve --config babelftp.yaml",
		Args: noArguments,
	}
	file := addConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadConfig(cmd, *file)
		if err != nil {
			return err
		}
		log := newLogger(cmd.ErrOrStderr(), cfg.Log)
		ctx, now, stop := stopSignals(cmd.Context())
		defer stop()
		srv, err := server.New(ctx, cfg, server.Options{Version: buildVersion(), Logger: log, Stdout: cmd.OutOrStdout()})
		if err != nil {
			return err
		}
		return serveUntil(ctx, now, srv, cfg.DrainTimeout, log, func() {
			log.Info("serving", "version", buildVersion(), "tenants", len(cfg.Tenants), "users", cfg.UsersCount())
		})
	}
	return cmd
}

// newLogger is a logger that writes to w.
func newLogger(w io.Writer, cfg config.Log) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.Level, ReplaceAttr: logline.Escape}
	if cfg.Format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
