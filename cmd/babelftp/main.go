// FTP opens a port for each transfer. By default, Go also listens for Multipath TCP, which costs more and
// which no FTP client uses.
//
//go:debug multipathtcp=0

// Command babelftp exposes S3 buckets over FTP and FTPS, in the language of each user.
//
// The exit code is 0 for success, 1 for an invalid configuration or a failure at run time, and 2 for wrong
// usage.
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

// run executes a command line and returns the exit code.
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
		build().PrintError(stderr, err)
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

// A usageError is an invalid command line.
type usageError struct {
	command string // the command whose --help shows the usage
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
		Short: "S3 buckets over FTP and FTPS, in each user's language",
		Long: "babelftp exposes S3 buckets over FTP and FTPS, in the language of each user.\n\n" +
			"To try it, run babelftp demo. It needs no configuration.",
		Version:       build().Text(),
		Args:          commandNeeded,
		RunE:          func(*cobra.Command, []string) error { return nil }, // Args always returns an error
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
		newDoctorCommand(), newAuditCommand(), newNamesCommand(), newKubernetesCommand(),
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

// suggestionDistance is the maximum edit distance between a mistyped command and a suggestion.
const suggestionDistance = 2

// commandNeeded rejects the use of a command that only groups others, and suggests similar commands.
func commandNeeded(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return newUsageError(cmd, "missing command")
	}
	hint := ""
	cmd.SuggestionsMinimumDistance = suggestionDistance
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = ", did you mean " + strings.Join(similar, " or ") + "?"
	}
	return newUsageError(cmd, "unknown command %q%s", args[0], hint)
}

// newHelpCommand returns a variant of cobra's help command that exits with 2 for an unknown command.
func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			explained, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return commandNeeded(explained, rest)
			}
			explained.InitDefaultHelpFlag() // for the same output as --help
			explained.InitDefaultVersionFlag()
			return explained.Help()
		},
	}
}

// noArguments rejects arguments. If the command has subcommands, it reports an argument as an unknown
// command.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return commandNeeded(cmd, args)
	}
	return newUsageError(cmd, "unexpected argument %q", args[0])
}

// exactly requires n arguments. expected describes them in the error.
func exactly(n int, expected string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return newUsageError(cmd, "expected %s", expected)
		}
		return nil
	}
}

// addConfigFlag adds --config.
func addConfigFlag(cmd *cobra.Command) *string {
	return cmd.Flags().StringP("config", "c", config.DefaultFile, "the configuration `FILE`")
}

// loadConfig reads the configuration in file and the environment.
func loadConfig(cmd *cobra.Command, file string) (*config.Config, error) {
	if file == "" {
		return nil, errNoConfig(cmd)
	}
	return config.Load(file, os.Environ())
}

// errNoTenant returns the error for an unknown tenant. It lists the known ones.
func errNoTenant(cfg *config.Config, name string) error {
	return fmt.Errorf("unknown tenant %q: want one of %s", name,
		strings.Join(slices.Sorted(maps.Keys(cfg.Tenants)), ", "))
}

func errNoConfig(cmd *cobra.Command) error { return newUsageError(cmd, "--config must not be empty") }
