package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/server/serve"
)

// version and commit are set by the linker: go build -ldflags "-X main.version=v1.2.3 -X main.commit=1a2b3c4".
var (
	version string
	commit  string //nolint:gochecknoglobals // only a variable can be set by the linker
)

// build returns the description of this program.
func build() serve.Build { return serve.Build{Program: "babelftp", Version: version, Commit: commit} }

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version",
		Long:    "Show the version of babelftp, the commit it was built from, and the version of Go.",
		Example: "  babelftp version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), build().Text())
			return err
		},
	}
}
