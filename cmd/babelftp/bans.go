package main

import (
	"cmp"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/admin"
)

// adminSocket is where the chart has the server answer.
const adminSocket = "/run/babelftp/admin/admin.sock"

var errNoAdminSocket = errors.New("admin_socket is not set, so the server takes no commands: set it, like " + adminSocket)

func newBansCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bans list | add | remove",
		Short: "Show and change the bans of a running server",
		Long: "Show and change the bans of a running server: the addresses, networks and users whom it refuses for a time. See limits.bans in the\n" +
			"configuration.\n\n" +
			"The server answers on admin_socket: from --socket, or from the configuration that --config names, or " + adminSocket + ",\n" +
			"which is where the Helm chart puts it.",
		Example: "  babelftp bans list\n" +
			"  babelftp bans add 203.0.113.7 --time 24h\n" +
			"  babelftp bans remove alice@acme\n" +
			"  kubectl exec babelftp-0 -- babelftp bans list",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return newUsageError(cmd, "unknown command %q", args[0])
			}
			return newUsageError(cmd, "a command is missing")
		},
		RunE: func(*cobra.Command, []string) error { return nil }, // Args refuses every call
	}
	socket := cmd.PersistentFlags().String("socket", "", "the `PATH` of admin_socket (default "+adminSocket+")")
	file := cmd.PersistentFlags().StringP("config", "c", "", "the configuration `FILE` to read admin_socket from")
	client := func(cmd *cobra.Command) (*admin.Client, error) {
		path := cmp.Or(*socket, adminSocket)
		if *file != "" {
			if *socket != "" {
				return nil, newUsageError(cmd, "--socket and --config do not go together")
			}
			cfg, err := loadConfig(cmd, *file)
			if err != nil {
				return nil, err
			}
			if path = cfg.AdminSocket; path == "" {
				return nil, errNoAdminSocket
			}
		}
		return admin.NewClient(path), nil
	}
	list := &cobra.Command{Use: "list", Short: "Show all bans", Example: "  babelftp bans list", Args: noArguments}
	list.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := client(cmd)
		if err != nil {
			return err
		}
		all, err := c.Bans(cmd.Context())
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tUNTIL\tREASON")
		for _, b := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\n", b.Name, b.Until.UTC().Format(time.RFC3339), b.Reason)
		}
		return w.Flush()
	}
	add := &cobra.Command{
		Use: "add ADDRESS | NETWORK | USER@TENANT", Short: "Ban an address, a network or a user",
		Long: "Ban an address, a network or a user. Open sessions of it get 421 and end, also in the middle of a transfer. So do new connections of the\n" +
			"address or network, and new logins of the user. Networks of limits.allow stay.",
		Example: "  babelftp bans add 203.0.113.7\n  babelftp bans add 203.0.113.0/24\n  babelftp bans add alice@acme --time 24h",
		Args:    oneName,
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
		Args:    oneName,
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
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return newUsageError(cmd, "write one address, one network, or one user with the tenant")
	}
	return nil
}
