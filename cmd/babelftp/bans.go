package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/users/bans"
)

func newBansCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bans",
		Short: "Show and change the bans of a running server",
		Long: "Show and change the addresses, networks and users that a running server has banned (limits.bans).\n" +
			"Replicas share their bans if the configuration has a state section.\n\n" + howToConnect,
		Example: "  babelftp bans list\n" +
			"  babelftp bans add 203.0.113.7 --time 24h\n" +
			"  babelftp bans remove alice@acme\n" +
			"  kubectl exec babelftp-0 -- babelftp bans list",
		Args: noArguments,
	}
	client := addAdminFlags(cmd)
	all := &cobra.Command{Use: "list", Short: "Show all bans",
		Example: "  babelftp bans list\n  babelftp bans list --json", Args: noArguments}
	asJSON := addJSONFlag(cmd)
	all.Flags().AddFlag(cmd.Flags().Lookup("json"))
	cmd.RunE = runList(client, asJSON, (*admin.Client).Bans, "NAME UNTIL REASON", func(t *table, all []bans.Ban) {
		for _, b := range all {
			t.row(b.Name, b.Until.UTC().Format(time.RFC3339), b.Reason)
		}
	})
	all.RunE = cmd.RunE
	oneName := exactly(1, "one address, one network, or one USER@TENANT")
	add := &cobra.Command{
		Use: "add ADDRESS | NETWORK | USER@TENANT", Short: "Ban an address, a network or a user",
		Long: "Ban an address, a network or a user. Its sessions end with 421, even during a transfer, and " +
			"it cannot connect or log in\n" +
			"until the ban ends. Networks in limits.allow are not affected.",
		Example: "  babelftp bans add 203.0.113.7\n  babelftp bans add 203.0.113.0/24\n  babelftp bans add " +
			"alice@acme --time 24h",
		Args: oneName,
	}
	d := add.Flags().Duration("time", 0, "ban for this `TIME` (default limits.bans.time)")
	add.RunE = runChange(client, func(c *admin.Client, ctx context.Context, args []string) (string, error) {
		b, err := c.Ban(ctx, args[0], *d)
		return b.Name + " is banned until " + b.Until.UTC().Format(time.RFC3339), err
	})
	remove := &cobra.Command{
		Use: "remove ADDRESS | NETWORK | USER@TENANT", Short: "Lift the ban of an address, a network or a user",
		Example: "  babelftp bans remove 203.0.113.7\n  babelftp bans remove alice@acme",
		Args:    oneName,
		RunE: runChange(client, func(c *admin.Client, ctx context.Context, args []string) (string, error) {
			name, err := c.Unban(ctx, args[0])
			return "the ban of " + name + " is lifted", err
		}),
	}
	cmd.AddCommand(all, add, remove)
	return cmd
}
