// FTP opens a port for each transfer. By default Go also listens for Multipath TCP, which costs more. No FTP client
// asks for it.
//
//go:debug multipathtcp=0

// Command babelftp exposes S3 buckets over FTP and FTPS, in the language of the person at the other end.
//
// The exit code is 0 for success, 1 for a wrong configuration or a failure at run time, and 2 for wrong usage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config"
)

// The exit codes.
const (
	exitOK = iota
	exitFailure
	exitUsage
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs a command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if !errors.Is(err, errWrong) {
		printError(stderr, err)
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

// printError writes an error. The problems of a configuration begin with the file, so that an editor can jump there.
func printError(w io.Writer, err error) {
	if problems, ok := errors.AsType[config.Problems](err); ok {
		fmt.Fprintf(w, "%v\nbabelftp: the configuration has %s\n", problems, count(len(problems), "problem"))
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintf(w, "babelftp: %s\n", line)
	}
}

// A usageError is a command line that makes no sense.
type usageError struct {
	command string // whose --help shows the right usage
	err     error
}

func (e *usageError) Error() string { return fmt.Sprintf("%v (see %s --help)", e.err, e.command) }

func (e *usageError) Unwrap() error { return e.err }

func newUsageError(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "babelftp",
		Short: "S3 buckets over FTP and FTPS, in the reader's language",
		Long: "babelftp exposes S3 buckets over FTP and FTPS, in the language of the person at the other end.\n\n" +
			"To look at it, run babelftp demo: it needs nothing else.",
		Version:       versionText(),
		Args:          commandNeeded,
		RunE:          func(*cobra.Command, []string) error { return nil }, // Args refuses every call
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return newUsageError(cmd, "%w", err) })
	root.SetVersionTemplate("{{.Version}}")
	root.SetHelpCommand(newHelpCommand(root))
	root.AddCommand(
		newDemoCommand(), newServeCommand(), newCheckCommand(), newHashPasswordCommand(), newLanguagesCommand(),
		newSchemaCommand(), newUsersCommand(), newHealthCommand(), newPolicyCommand(), newVersionCommand(),
		newSessionsCommand(), newTransfersCommand(), newUploadsCommand(), newBansCommand(), newDebugCommand(),
		newDoctorCommand(), newAuditCommand(), newNamesCommand(),
	)
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = commandNeeded, root.RunE
		for _, shell := range completion.Commands() {
			shell.Args = noArguments
		}
		completion.Example = "  babelftp completion bash > /etc/bash_completion.d/babelftp"
	}
	return root
}

// suggestionDistance is how many characters a command may differ in from the one that was meant.
const suggestionDistance = 2

// commandNeeded refuses a command that only holds others, and names those that the user may have meant.
func commandNeeded(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return newUsageError(cmd, "a command is missing")
	}
	hint := ""
	cmd.SuggestionsMinimumDistance = suggestionDistance
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = ", did you mean " + strings.Join(similar, " or ") + "?"
	}
	return newUsageError(cmd, "unknown command %q%s", args[0], hint)
}

// newHelpCommand is cobra's help command, with an exit code of its own for an unknown command.
func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			explained, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return commandNeeded(explained, rest)
			}
			explained.InitDefaultHelpFlag() // as --help shows it
			explained.InitDefaultVersionFlag()
			return explained.Help()
		},
	}
}

// noArguments refuses arguments that are no flags, and takes them for commands where the command has others.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return commandNeeded(cmd, args)
	}
	return newUsageError(cmd, "unexpected argument %q", args[0])
}

// exactly requires a number of arguments. The usage says which.
func exactly(n int, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return newUsageError(cmd, "%s", usage)
		}
		return nil
	}
}

// addConfigFlag adds --config.
func addConfigFlag(cmd *cobra.Command) *string {
	return cmd.Flags().StringP("config", "c", config.DefaultFile, "the configuration `FILE`")
}

// loadConfig reads the file that --config names, and the environment.
func loadConfig(cmd *cobra.Command, file string) (*config.Config, error) {
	if file == "" {
		return nil, errNoConfig(cmd)
	}
	return config.Load(file, os.Environ())
}

// errNoTenant says that a configuration lacks a tenant, and which ones it has.
func errNoTenant(cfg *config.Config, name string) error {
	return fmt.Errorf("the configuration has no tenant %q, but %s", name,
		strings.Join(slices.Sorted(maps.Keys(cfg.Tenants)), ", "))
}

func errNoConfig(cmd *cobra.Command) error { return newUsageError(cmd, "--config names no file") }
