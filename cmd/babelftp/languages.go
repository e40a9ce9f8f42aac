package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config"
)

func newLanguagesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "languages",
		Short: "Show the languages and how complete each is",
		Long: "Show each language that the server speaks: its tag, which a client gives to LANG, how many of the texts are translated (the\n" +
			"others come in English), and its own name.",
		Example: "  babelftp languages\n" +
			"  babelftp languages --locales ./locales",
		Args: noArguments,
	}
	dir := cmd.Flags().String("locales", "", "a `DIR` of catalogues that add to the built-in ones, like locales_dir of the configuration")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg := config.Default()
		cfg.LocalesDir = *dir
		bundle, err := cfg.Bundle()
		if err != nil {
			return err
		}
		// The name comes last, because terminals differ in how wide they show some scripts and in the direction of others.
		const columnGap = 2
		table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, columnGap, ' ', 0)
		for _, c := range bundle.Completeness() {
			fmt.Fprintf(table, "%s\t%d/%d\t%3d %%\t%s\n", c.Tag, c.Translated, c.Total, c.Translated*100/c.Total, c.Name)
		}
		return table.Flush()
	}
	return cmd
}
