package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: go build -ldflags "-X main.version=v1.2.3".
var version string

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

// versionText is what version and --version show.
func versionText() string {
	return fmt.Sprintf("babelftp %s\ncommit %s\n%s %s/%s\n",
		buildVersion(), buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// buildVersion is what the linker set, or what the go command knows of the module.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return cmp.Or(version, info.Main.Version, "unknown")
	}
	return cmp.Or(version, "unknown")
}

// buildCommit is the commit that the go command built, "unknown" outside of a repository.
func buildCommit() string {
	info, _ := debug.ReadBuildInfo()
	commit, modified := "unknown", ""
	if info != nil {
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				commit = setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				modified = " with changes"
			}
		}
	}
	return commit + modified
}
