package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// debugTime is how long the log has commands unless the administrator says.
const debugTime = 10 * time.Minute

func newDebugCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "debug [--address ADDRESS] [--tenant TENANT] [--user USER] [--for TIME]",
		Short: "Log the commands of some sessions of a running server",
		Long: "Log the commands, replies and S3 requests of sessions that match --address, --tenant and --user, also of " +
			"open ones. Without these flags,\n" +
			"the command shows for which sessions it is on. Passwords are masked, and so are names in USER. Each " +
			"replica is switched separately.\n\n" +
			howToAsk,
		Example: "  babelftp debug --address 192.0.2.7 --for 10m\n" +
			"  babelftp debug --user scanner@acme\n" +
			"  babelftp debug\n" +
			"  babelftp debug --off\n" +
			"  kubectl exec babelftp-0 -- babelftp debug --tenant acme",
		Args: noArguments,
	}
	client := addAdminFlags(cmd)
	flags := cmd.Flags()
	address := flags.String("address", "", "sessions of clients at this `ADDRESS` or network")
	tenant := flags.String("tenant", "", "sessions of this `TENANT`")
	user := flags.String("user", "", "sessions of this `USER`, like alice or alice@acme, after the login")
	d := flags.Duration("for", debugTime, "log for this `TIME`, "+sessionlog.MaxTime.String()+" at most")
	off := flags.Bool("off", false, "stop it for all sessions")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		some := *address != "" || *tenant != "" || *user != ""
		switch {
		case *off && (some || flags.Changed("for")):
			return newUsageError(cmd, "--off ends all, and goes with no other option")
		case !some && flags.Changed("for"):
			return newUsageError(cmd, "--for needs --address, --tenant or --user")
		}
		c, err := client(cmd)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		switch {
		case *off:
			rules, err := c.DebugOff(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "%d ended\n", len(rules))
			return err
		case !some:
			rules, err := c.DebugRules(cmd.Context())
			if err != nil {
				return err
			}
			return showRules(out, rules)
		}
		rule, err := c.Debug(cmd.Context(), *address, *tenant, *user, *d)
		if err != nil {
			return err
		}
		return showRules(out, []sessionlog.Rule{rule})
	}
	return cmd
}

// showRules shows for which sessions the log has commands.
func showRules(out io.Writer, rules []sessionlog.Rule) error {
	t := newTable(out, "ADDRESS", "TENANT", "USER", "UNTIL")
	const anyOf = "any"
	for _, r := range rules {
		address := anyOf
		if r.Network.IsValid() {
			address = r.Network.String()
		}
		t.row(address, cmp.Or(r.Tenant, anyOf), cmp.Or(r.User, anyOf), r.Until.UTC().Format(time.RFC3339))
	}
	return t.flush()
}
