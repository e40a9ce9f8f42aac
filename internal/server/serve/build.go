package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/babelftp/babelftp/internal/config"
)

// A Build describes a program. Version and Commit are what the linker set, or empty.
type Build struct{ Program, Version, Commit string }

// Text returns the output of --version.
func (b Build) Text() string {
	return fmt.Sprintf("%s %s\ncommit %s\n%s %s/%s\n",
		b.Program, b.VersionOrModule(), b.commitOrInfo(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// VersionOrModule returns the version set by the linker, or else the version of the module.
func (b Build) VersionOrModule() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return cmp.Or(b.Version, info.Main.Version, "unknown")
	}
	return cmp.Or(b.Version, "unknown")
}

// commitOrInfo returns the commit set by the linker, or else the commit in the build info, or else "unknown".
func (b Build) commitOrInfo() string {
	if b.Commit != "" {
		return b.Commit
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

// PrintError prints an error. Problems of a configuration start with the file name, so that editors can jump to them.
func (b Build) PrintError(w io.Writer, err error) {
	if problems, ok := errors.AsType[config.Problems](err); ok {
		noun := "problems"
		if len(problems) == 1 {
			noun = "problem"
		}
		fmt.Fprintf(w, "%v\n%s: the configuration has %d %s\n", problems, b.Program, len(problems), noun)
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(w, "%s: %s\n", b.Program, line)
	}
}
