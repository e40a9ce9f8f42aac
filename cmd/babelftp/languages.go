package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/locales"
)

func newLanguagesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "languages",
		Short: "Show the languages and how complete each is, or check catalogues",
		Long: "Show each language: its tag for LANG, how many of the texts are translated, who has read them and when, and its " +
			"own name.\n\n" +
			"With --lint every problem of catalogues is shown with file, line, message and what to do. With --format a " +
			"translation\nwhose English has changed is marked fuzzy.",
		Example: "  babelftp languages\n" +
			"  babelftp languages --locales ./locales\n" +
			"  babelftp languages --lint ./locales\n" +
			"  babelftp languages --format ./locales",
		Args: noArguments,
	}
	dir := cmd.Flags().String(
		"locales", "", "a `DIR` of catalogues that add to the built-in ones, like locales_dir of the configuration")
	lint := cmd.Flags().String("lint", "", "check the catalogues in `DIR` and show these languages only")
	format := cmd.Flags().String(
		"format", "",
		"write the catalogues in `DIR` in the standard layout, and show the files that change")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		changed := slices.DeleteFunc([]string{"--lint", "--locales", "--format"}, func(option string) bool {
			return !cmd.Flags().Changed(option[2:])
		})
		switch {
		case len(changed) > 1:
			return newUsageError(cmd, "%s do not go together", strings.Join(changed, " and "))
		case cmd.Flags().Changed("lint"):
			return lintCatalogues(cmd, *lint)
		case cmd.Flags().Changed("format"):
			return formatCatalogues(cmd, *format)
		}
		if *dir != "" {
			if err := checkFolder(cmd, "locales", *dir); err != nil {
				return err
			}
		}
		cfg := config.Default()
		cfg.LocalesDir = *dir
		bundle, err := cfg.Bundle()
		if err != nil {
			return err
		}
		return showLanguages(cmd.OutOrStdout(), *dir, bundle.Completeness())
	}
	return cmd
}

// checkFolder returns an error of usage if an option does not name a folder.
func checkFolder(cmd *cobra.Command, option, dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return newUsageError(
			cmd, "--%s %q is not a folder: name the one that holds a folder for each language", option, dir)
	}
	return nil
}

// formatCatalogues rewrites the catalogues in a folder where their layout differs, and shows the files.
func formatCatalogues(cmd *cobra.Command, dir string) error {
	if err := checkFolder(cmd, "format", dir); err != nil {
		return err
	}
	formatted, err := i18n.Format(os.DirFS(dir))
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	for _, name := range slices.Sorted(maps.Keys(formatted)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := replaceFile(file, formatted[name]); err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), file)
	}
	return nil
}

// replaceFile gives a file another content. An error leaves the file as it was.
func replaceFile(name string, text []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	next := name + ".new"
	err = os.WriteFile(next, text, info.Mode().Perm())
	if err == nil {
		err = os.Rename(next, name)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}

// lintCatalogues shows what is wrong with the catalogues in a folder.
func lintCatalogues(cmd *cobra.Command, dir string) error {
	if err := checkFolder(cmd, "lint", dir); err != nil {
		return err
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
	return showLanguages(cmd.OutOrStdout(), dir, report.Languages)
}

// showLanguages writes one line a language, with who has read its texts, which a folder of catalogues tells before what
// is built in. The name comes last, because terminals differ in how wide they show some scripts and in the direction of
// others.
func showLanguages(w io.Writer, dir string, languages []i18n.Coverage) error {
	const columnGap = 2
	table := tabwriter.NewWriter(w, 0, 0, columnGap, ' ', 0)
	for _, c := range languages {
		review := i18n.Review(locales.FS(), c.Tag)
		if dir != "" {
			review = cmp.Or(i18n.Review(os.DirFS(dir), c.Tag), review)
		}
		fmt.Fprintf(table, "%s\t%d/%d\t%3d %%\t%s\t%s\n", c.Tag, c.Translated, c.Total,
			c.Translated*100/c.Total, cmp.Or(review, "-"), c.Name)
	}
	return table.Flush()
}
