package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// newCompletionCommand returns the command that prints completion scripts. It replaces cobra's, which has a subcommand
// for each shell.
func newCompletionCommand() *cobra.Command {
	shells := map[string]func(root *cobra.Command, out io.Writer) error{
		"bash":       func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) },
		"fish":       func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
		"zsh":        (*cobra.Command).GenZshCompletion,
	}
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:   "completion {" + strings.Join(names, " | ") + "}",
		Short: "Print a script that completes commands in a shell",
		Long: "Print a script with which a shell completes the commands and flags of babelftp when you press Tab. Bash needs " +
			"the package\nbash-completion. Open a new shell afterwards.",
		Example: "  babelftp completion bash > /etc/bash_completion.d/babelftp\n" +
			"  babelftp completion zsh > \"${fpath[1]}/_babelftp\"\n" +
			"  babelftp completion fish > ~/.config/fish/completions/babelftp.fish\n" +
			"  babelftp completion powershell >> $PROFILE\n" +
			"  source <(babelftp completion bash)        # in this shell only",
		ValidArgs: names,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return newUsageError(cmd, "give one shell: %s", strings.Join(names, ", "))
			}
			if shells[args[0]] == nil {
				return newUsageError(cmd, "unknown shell %q: write one of %s", args[0], strings.Join(names, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := shells[args[0]](cmd.Root(), cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("cannot write the script: %w", err)
			}
			return nil
		},
	}
}
