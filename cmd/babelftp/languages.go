package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
)

func newLanguagesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "languages",
		Short: "Show the languages and how complete each is, or check catalogues",
		Long: "Show each language that the server speaks: its tag, which a client gives to LANG, how many of the texts are translated (the\n" +
			"others come in English), and its own name.\n\n" +
			"With --lint check the catalogues in a folder before they are used or handed in. Everything that is wrong with them is shown with\n" +
			"file, line, message and what to do. The exit code is 1 if there is an error; warnings are for a person to decide on.",
		Example: "  babelftp languages\n" +
			"  babelftp languages --locales ./locales\n" +
			"  babelftp languages --lint ./locales",
		Args: noArguments,
	}
	dir := cmd.Flags().String("locales", "", "a `DIR` of catalogues that add to the built-in ones, like locales_dir of the configuration")
	lint := cmd.Flags().String("lint", "", "check the catalogues in `DIR` and show these languages only")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case cmd.Flags().Changed("lint") && cmd.Flags().Changed("locales"):
			return newUsageError(cmd, "--lint and --locales do not go together")
		case cmd.Flags().Changed("lint"):
			return lintCatalogues(cmd, *lint)
		}
		cfg := config.Default()
		cfg.LocalesDir = *dir
		bundle, err := cfg.Bundle()
		if err != nil {
			return err
		}
		return showLanguages(cmd.OutOrStdout(), bundle.Completeness())
	}
	return cmd
}

// lintCatalogues shows what is wrong with the catalogues in a folder.
func lintCatalogues(cmd *cobra.Command, dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return newUsageError(cmd, "--lint %q is no folder: name the one that holds a folder for each language", dir)
	}
	report, err := i18n.Lint(os.DirFS(dir))
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	failures := 0
	for _, d := range report.Diagnostics {
		d.File = filepath.Join(dir, filepath.FromSlash(d.File))
		fmt.Fprintln(cmd.ErrOrStderr(), d.Error())
		if !d.Warning {
			failures++
		}
	}
	if failures > 0 {
		return fmt.Errorf("the catalogues have %s", count(failures, "error"))
	}
	return showLanguages(cmd.OutOrStdout(), report.Languages)
}

// showLanguages writes one line a language. The name comes last, because terminals differ in how wide they show some scripts and in the
// direction of others.
func showLanguages(w io.Writer, languages []i18n.Coverage) error {
	const columnGap = 2
	table := tabwriter.NewWriter(w, 0, 0, columnGap, ' ', 0)
	for _, c := range languages {
		fmt.Fprintf(table, "%s\t%d/%d\t%3d %%\t%s\n", c.Tag, c.Translated, c.Total, c.Translated*100/c.Total, c.Name)
	}
	return table.Flush()
}
