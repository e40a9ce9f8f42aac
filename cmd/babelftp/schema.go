package main

import (
	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config"
)

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Show the JSON Schema of the configuration",
		Long: "Show the JSON Schema of the configuration, with the meaning of each key. Editors complete and check " +
			"a file by it.\n" +
			"babelftp check finds more, such as missing files.",
		Example: "  babelftp schema > babelftp.schema.json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		},
	}
}
