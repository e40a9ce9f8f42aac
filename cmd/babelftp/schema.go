package main

import (
	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config"
)

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Show the JSON Schema of the configuration",
		Long: "Show the JSON Schema of the configuration, with a description of each key. Editors use it to complete and check " +
			"a file.\n" +
			"babelftp check finds more problems, such as missing files.",
		Example: "  babelftp schema > babelftp.schema.json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		},
	}
}
