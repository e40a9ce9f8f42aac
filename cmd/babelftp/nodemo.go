//go:build nodemo

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

var errNoDemo = errors.New(
	"this build has no built-in S3 server: build it without the tag nodemo, or use the image of the Dockerfile's " +
		"target demo")

// newDemoCommand replaces the demo in the deployed build, which does not link an S3 server.
func newDemoCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "demo",
		Short:   "Not available: this build has no built-in S3 server",
		Long:    "Explain how to get a build with a built-in S3 server. This build has none, which keeps it small.",
		Example: "  babelftp demo",

		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}, // accept the flags of the full build
		RunE:               func(*cobra.Command, []string) error { return errNoDemo },
	}
}
