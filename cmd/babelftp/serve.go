package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server/serve"
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
		return serve.File(cmd.Context(), *file, serve.Options{
			Version: build().VersionOrModule(), Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(),
			Accept: withoutResources,
		})
	}
	return cmd
}

// withoutResources refuses a configuration with custom resources, whose tenants and users would be missing.
func withoutResources(cfg *config.Config) error {
	if !cfg.Kubernetes.IsSet() {
		return nil
	}
	return errors.New("the configuration has a kubernetes section, and babelftp serve does not read custom resources: run " +
		"babelftp-kubernetes instead, or remove the section")
}
