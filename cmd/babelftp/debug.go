package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// debugTime is the default duration of debug logging.
const debugTime = 10 * time.Minute

func newDebugCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "debug [--address ADDRESS] [--tenant TENANT] [--user USER] [--for TIME]",
		Short: "Log the commands of some sessions of a running server",
		Long: "Log the commands, replies and S3 requests of sessions that match --address, --tenant and --user, including " +
			"those already open. Without these flags,\n" +
			"the command shows the sessions that are logged now. Passwords and the names in USER are masked. Each " +
			"replica has its own setting.\n\n" +
			howToConnect,
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
	user := flags.String("user", "", "sessions of this `USER`, such as alice or alice@acme, after the login")
	d := flags.Duration("for", debugTime, "log for this `TIME`, at most "+sessionlog.MaxTime.String())
	off := flags.Bool("off", false, "stop debug logging for all sessions")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		some := *address != "" || *tenant != "" || *user != ""
		switch {
		case *off && (some || flags.Changed("for")):
			return newUsageError(cmd, "--off cannot be combined with other options")
		case !some && flags.Changed("for"):
			return newUsageError(cmd, "--for requires --address, --tenant or --user")
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

// showRules prints the sessions for which debug logging is on.
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
