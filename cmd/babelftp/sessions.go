package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/report"
)

func newSessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "Show and end the sessions of a running server",
		Long: "Show the sessions of a running server: who is connected from where, since when, in which language, " +
			"and the current command. IDLE is\n" +
			"the time since the last command began or ended. Each replica only shows its own sessions.\n\n" + howToConnect,
		Example: "  babelftp sessions\n" +
			"  babelftp sessions --json\n" +
			"  babelftp sessions disconnect 5f2c8a0de19b4c37\n" +
			"  babelftp sessions --url https://babelftp.example.com:9122 --as ann --password-file password\n" +
			"  kubectl exec babelftp-0 -- babelftp sessions",
		Args: noArguments,
	}
	client := addAdminFlags(cmd)
	asJSON := addJSONFlag(cmd)
	cmd.RunE = runList(
		client, asJSON, (*admin.Client).Sessions, "ID USER REMOTE SINCE IDLE LANG TLS DOES",
		func(t *table, all []report.SessionInfo) {
			now := time.Now()
			for _, s := range all {
				does, encrypted := s.Command, "no"
				if s.Transfer != nil {
					does += " " + s.Transfer.Path
				}
				if s.TLS {
					encrypted = "yes"
				}
				t.row(
					s.ID, userOf(s.User, s.Tenant), s.Remote, ago(s.Since, now), ago(s.LastActive, now), s.Language,
					encrypted, does)
			}
		})
	disconnect := &cobra.Command{
		Use: "disconnect ID", Short: "End a session",
		Long: "End a session. Its client gets 421. A running transfer gets 426 first and stores no file; with resume: " +
			"keep, the user can resume it.",
		Example: "  babelftp sessions disconnect 5f2c8a0de19b4c37\n" +
			"  babelftp bans add alice@acme --time 1h              # and prevent a new login",
		Args: exactly(1, "one ID from the output of babelftp sessions"),
		RunE: runChange(client, func(c *admin.Client, ctx context.Context, args []string) (string, error) {
			return "session " + args[0] + " disconnected", c.Disconnect(ctx, args[0])
		}),
	}
	cmd.AddCommand(disconnect)
	return cmd
}

func newTransfersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "transfers",
		Short: "Show the transfers of a running server",
		Long: "Show the running transfers: who uploads or downloads which file, the progress and the rate. The size of an " +
			"upload is only known if the client\n" +
			"has announced it with ALLO. Each replica only shows its own transfers.\n\n" + howToConnect,
		Example: "  babelftp transfers\n" +
			"  babelftp transfers --json\n" +
			"  kubectl exec babelftp-0 -- babelftp transfers",
		Args: noArguments,
	}
	client := addAdminFlags(cmd)
	asJSON := addJSONFlag(cmd)
	cmd.RunE = runList(
		client, asJSON, (*admin.Client).Transfers, "SESSION USER DIRECTION BYTES DONE RATE SINCE PATH",
		func(t *table, all []report.TransferInfo) {
			now := time.Now()
			for i := range all {
				x := &all[i]
				t.row(
					x.Session, userOf(x.User, x.Tenant), x.Direction, bytesText(x.Bytes), done(x),
					bytesText(x.BytesPerSecond)+"/s", ago(x.Since, now), x.Path)
			}
		})
	return cmd
}

// done formats the completed part of a transfer. It returns an empty string if the size is unknown.
func done(x *report.TransferInfo) string {
	const all = 100
	switch {
	case x.Size == nil:
		return ""
	case *x.Size <= 0:
		return "100%"
	}
	return fmt.Sprintf("%d%%", min(all, int64(float64(x.Bytes)/float64(*x.Size)*all)))
}

// userOf formats a user as USER@TENANT, or as an empty string before the login.
func userOf(user, tenant string) string {
	if user == "" {
		return ""
	}
	return user + "@" + tenant
}
