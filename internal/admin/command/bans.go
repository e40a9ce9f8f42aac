package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (p Program) bans() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bans",
		Short: "Show and change the bans of a running server",
		Long: "Show and change the bans of a running server: the addresses, networks and users whom it refuses for a time. See limits.bans in the\n" +
			"configuration.\n\n" +
			howToAsk,
		Example: "  babelftp bans list\n" +
			"  babelftp bans add 203.0.113.7 --time 24h\n" +
			"  babelftp bans remove alice@acme\n" +
			"  kubectl exec babelftp-0 -- babelftp bans list",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return p.UsageError(cmd, "unknown command %q", args[0])
			}
			return nil
		},
	}
	client := p.addFlags(cmd)
	list := &cobra.Command{Use: "list", Short: "Show all bans", Example: "  babelftp bans list\n  babelftp bans list --json", Args: p.noArguments}
	asJSON := addJSONFlag(cmd)
	list.Flags().AddFlag(cmd.Flags().Lookup("json"))
	show := func(cmd *cobra.Command, _ []string) error {
		c, err := client(cmd)
		if err != nil {
			return err
		}
		all, err := c.Bans(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(cmd.OutOrStdout(), all)
		}
		t := newTable(cmd.OutOrStdout(), "NAME", "UNTIL", "REASON")
		for _, b := range all {
			t.row(b.Name, b.Until.UTC().Format(time.RFC3339), b.Reason)
		}
		return t.flush()
	}
	cmd.RunE, list.RunE = show, show
	add := &cobra.Command{
		Use: "add ADDRESS | NETWORK | USER@TENANT", Short: "Ban an address, a network or a user",
		Long: "Ban an address, a network or a user. Open sessions of it get 421 and end, also in the middle of a transfer. So do new connections of the\n" +
			"address or network, and new logins of the user. Networks of limits.allow stay.",
		Example: "  babelftp bans add 203.0.113.7\n  babelftp bans add 203.0.113.0/24\n  babelftp bans add alice@acme --time 24h",
		Args:    p.oneName,
	}
	d := add.Flags().Duration("time", 0, "how long the ban lasts (default limits.bans.time)")
	add.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := client(cmd)
		if err != nil {
			return err
		}
		b, err := c.Ban(cmd.Context(), args[0], *d)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is banned until %s\n", b.Name, b.Until.UTC().Format(time.RFC3339))
		return err
	}
	remove := &cobra.Command{
		Use: "remove ADDRESS | NETWORK | USER@TENANT", Short: "End the ban of an address, a network or a user",
		Example: "  babelftp bans remove 203.0.113.7\n  babelftp bans remove alice@acme",
		Args:    p.oneName,
	}
	remove.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := client(cmd)
		if err != nil {
			return err
		}
		name, err := c.Unban(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is not banned any more\n", name)
		return err
	}
	cmd.AddCommand(list, add, remove)
	return cmd
}

// oneName wants one argument.
func (p Program) oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return p.UsageError(cmd, "write one address, one network, or one user with the tenant")
	}
	return nil
}
