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
		Short: "List the languages and their completeness, or check catalogs",
		Long: "List the languages, each with its tag for LANG, the number of translated texts, who reviewed them and when, and its " +
			"own name.\n\n" +
			"With --lint, every problem in the catalogs is shown with its file, line, message and a fix. With --format, a " +
			"translation\nis marked fuzzy if its English text has changed.",
		Example: "  babelftp languages\n" +
			"  babelftp languages --locales ./locales\n" +
			"  babelftp languages --lint ./locales\n" +
			"  babelftp languages --format ./locales",
		Args: noArguments,
	}
	dir := cmd.Flags().String(
		"locales", "", "a `DIR` of catalogs to use in addition to the built-in ones, like locales_dir in the configuration")
	lint := cmd.Flags().String("lint", "", "check the catalogs in `DIR` and only list their languages")
	format := cmd.Flags().String(
		"format", "",
		"rewrite the catalogs in `DIR` in the standard layout, and list the changed files")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		changed := slices.DeleteFunc([]string{"--lint", "--locales", "--format"}, func(option string) bool {
			return !cmd.Flags().Changed(option[2:])
		})
		switch {
		case len(changed) > 1:
			return newUsageError(cmd, "%s cannot be combined", strings.Join(changed, " and "))
		case cmd.Flags().Changed("lint"):
			return lintCatalogs(cmd, *lint)
		case cmd.Flags().Changed("format"):
			return formatCatalogs(cmd, *format)
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

// checkFolder returns a usage error if an option does not name a directory.
func checkFolder(cmd *cobra.Command, option, dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return newUsageError(
			cmd, "invalid --%s %q: want a directory with a subdirectory for each language", option, dir)
	}
	return nil
}

// formatCatalogs rewrites the catalogs in a directory that are not in the standard layout, and prints their
// names.
func formatCatalogs(cmd *cobra.Command, dir string) error {
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

// replaceFile replaces the content of a file atomically. If it fails, the file is unchanged.
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

// lintCatalogs prints the problems of the catalogs in a directory.
func lintCatalogs(cmd *cobra.Command, dir string) error {
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
		return fmt.Errorf("the catalogs have %s", count(failures, "error"))
	}
	return showLanguages(cmd.OutOrStdout(), dir, report.Languages)
}

// showLanguages prints one line per language. The review noted in dir takes precedence over the built-in one.
// The name of the language comes last, because terminals disagree about the width and direction of some
// scripts.
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
