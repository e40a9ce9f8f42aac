package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/admin"
)

func newUploadsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uploads",
		Short: "Show and abort incomplete uploads",
		Long: "Show the incomplete multipart uploads of all replicas. Users can resume uploads in the state interrupted. " +
			"LAST is the time since a session\n" +
			"worked on the upload. If some buckets cannot be listed, the command shows the other uploads and fails.\n\n" +
			howToConnect,
		Example: "  babelftp uploads\n" +
			"  babelftp uploads --tenant acme --json\n" +
			"  babelftp uploads abort acme 2bd806c97f0e00af-6f0c1b2d3e4f5a69788796a5b4c3d2e1-9f86d081884c7d65\n" +
			"  kubectl exec babelftp-0 -- babelftp uploads",
		Args: noArguments,
	}
	client := addAdminFlags(cmd)
	asJSON := addJSONFlag(cmd)
	tenant := cmd.Flags().String("tenant", "", "only show uploads of this `TENANT`")
	var unanswered error
	fetch := func(c *admin.Client, ctx context.Context) (admin.Uploads, error) {
		all, err := c.Uploads(ctx, *tenant)
		if n := len(all.Uploads); all.Total > n {
			fmt.Fprintf(
				cmd.ErrOrStderr(),
				"babelftp: showing %d of %d uploads, the most recent of each bucket\n", n,
				all.Total)
		}
		for _, u := range all.Unanswered {
			unanswered = errors.Join(unanswered, errors.New(u.Reason))
		}
		return all, err
	}
	show := runList(client, asJSON, fetch, "TENANT USER STATE BYTES LAST PATH ID", func(t *table, all admin.Uploads) {
		now := time.Now()
		for _, u := range all.Uploads {
			bytes := ""
			if u.Bytes != nil {
				bytes = bytesText(*u.Bytes)
			}
			t.row(u.Tenant, u.User, u.State, bytes, ago(u.LastPart, now), u.Path, u.ID)
		}
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := show(cmd, args); err != nil {
			return err
		}
		return unanswered
	}
	abort := &cobra.Command{
		Use: "abort TENANT ID", Short: "Abort an interrupted upload",
		Long: "Abort an interrupted upload and delete its parts. The user then has to start over. An upload that a " +
			"session is working on cannot be aborted: end the\n" +
			"session first. Files are not affected.",
		Example: "  babelftp uploads abort acme 2bd806c97f0e00af-6f0c1b2d3e4f5a69788796a5b4c3d2e1-9f86d081884c7d65",
		Args:    exactly(2, "a tenant and one ID from the output of babelftp uploads"),
		RunE: runChange(client, func(c *admin.Client, ctx context.Context, args []string) (string, error) {
			return "upload " + args[1] + " aborted", c.Abort(ctx, args[0], args[1])
		}),
	}
	cmd.AddCommand(abort)
	return cmd
}
