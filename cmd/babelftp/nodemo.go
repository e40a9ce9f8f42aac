//go:build nodemo

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

var errNoDemo = errors.New(
	"this build has no S3 server inside: build it without the tag nodemo, or use the image of the Dockerfile's " +
		"target demo")

// newDemoCommand stands in for the demo in the build that people deploy, which links no S3 server.
func newDemoCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "demo",
		Short:   "Try it with a build that has an S3 server inside",
		Long:    "Say how to get a build that has an S3 server inside. This one has none, so that it is small.",
		Example: "  babelftp demo",

		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}, // those of the other build
		RunE:               func(*cobra.Command, []string) error { return errNoDemo },
	}
}
