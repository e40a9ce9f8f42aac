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
		Long: "Show the incomplete multipart uploads of all replicas. Users can resume those in the state interrupted. " +
			"LAST is the time since a session\n" +
			"worked on the upload. If some buckets do not answer, the command shows the uploads of the others and fails.\n\n" +
			howToAsk,
		Example: "  babelftp uploads\n" +
			"  babelftp uploads --tenant acme --json\n" +
			"  babelftp uploads abort acme 2bd806c97f0e00af-6f0c1b2d3e4f5a69788796a5b4c3d2e1-9f86d081884c7d65\n" +
			"  kubectl exec babelftp-0 -- babelftp uploads",
		Args: noArguments,
	}
	client := addAdminFlags(cmd)
	asJSON := addJSONFlag(cmd)
	tenant := cmd.Flags().String("tenant", "", "only those of this `TENANT`")
	var unanswered error
	ask := func(c *admin.Client, ctx context.Context) (admin.Uploads, error) {
		all, err := c.Uploads(ctx, *tenant)
		if n := len(all.Uploads); all.Total > n {
			fmt.Fprintf(
				cmd.ErrOrStderr(),
				"babelftp: %d of %d uploads are shown, those of each bucket on which a session has worked last\n", n,
				all.Total)
		}
		for _, u := range all.Unanswered {
			unanswered = errors.Join(unanswered, errors.New(u.Reason))
		}
		return all, err
	}
	show := runList(client, asJSON, ask, "TENANT USER STATE BYTES LAST PATH ID", func(t *table, all admin.Uploads) {
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
		Long: "Abort an interrupted upload and delete its parts. The user then has to start again. An upload that a " +
			"session works on stays: end that\n" +
			"session first. No file is deleted.",
		Example: "  babelftp uploads abort acme 2bd806c97f0e00af-6f0c1b2d3e4f5a69788796a5b4c3d2e1-9f86d081884c7d65",
		Args:    exactly(2, "write the tenant and one ID, as babelftp uploads shows them"),
		RunE: runChange(client, func(c *admin.Client, ctx context.Context, args []string) (string, error) {
			return args[1] + " is aborted", c.Abort(ctx, args[0], args[1])
		}),
	}
	cmd.AddCommand(abort)
	return cmd
}
