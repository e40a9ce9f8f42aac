package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the linker: go build -ldflags "-X main.version=v1.2.3 -X main.commit=1a2b3c4".
var (
	version string
	commit  string //nolint:gochecknoglobals // only a variable can be set by the linker
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version",
		Long:    "Show the version of babelftp, the commit it was built from, and the version of Go.",
		Example: "  babelftp version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

// versionText returns the output of version and --version.
func versionText() string {
	return fmt.Sprintf("babelftp %s\ncommit %s\n%s %s/%s\n",
		buildVersion(), buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion returns the version set by the linker, or else the version of the module.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return cmp.Or(version, info.Main.Version, "unknown")
	}
	return cmp.Or(version, "unknown")
}

// buildCommit returns the commit set by the linker, or else the commit in the build info, or else "unknown".
func buildCommit() string {
	if commit != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "unknown", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = " with changes"
		}
	}
	return revision + modified
}
