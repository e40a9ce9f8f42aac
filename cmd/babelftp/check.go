package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/certificates"
	"github.com/babelftp/babelftp/internal/server"
)

func newCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check --config FILE",
		Short: "Check a configuration and show every problem",
		Long: "Check a configuration. Every problem is shown with its file, line and column, and the exit code is 1 if there is one.\n" +
			"A certificate that ends within 30 days is a warning, and one that has ended is a problem.\n" +
			"With --buckets S3 is asked for the bucket of each tenant too.",
		Example: "  babelftp check --config babelftp.yaml\n" +
			"  babelftp check --config babelftp.yaml --buckets",
		Args: noArguments,
	}
	file := addConfigFlag(cmd)
	buckets := cmd.Flags().Bool("buckets", false, "ask S3 for the bucket of each tenant")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadConfig(cmd, *file)
		if err != nil {
			return err
		}
		shown, err := certificates.Open(cfg, nil, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		ended, warnings := shown.Problems(time.Now())
		for _, warning := range warnings {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
		}
		if len(ended) > 0 {
			return errors.New(strings.Join(ended, "\n"))
		}
		if *buckets {
			srv, err := server.New(cmd.Context(), cfg, server.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			if err := srv.CheckBuckets(cmd.Context()); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "configuration ok: %s, %s\n",
			count(len(cfg.Tenants), "tenant"), count(cfg.UsersCount(), "user"))
		return err
	}
	return cmd
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
