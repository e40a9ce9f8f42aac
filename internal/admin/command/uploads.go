package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (p Program) uploads() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "uploads",
		Short: "Show and abort the uploads that are not complete",
		Long: "Show the multipart uploads of a running server, and of all replicas, that are not complete. Their users can resume those in the state\n" +
			"interrupted (resume: keep). LAST is the time since a session has worked on the upload. The server removes an upload after\n" +
			"abandoned_uploads by itself.\n\n" + howToAsk,
		Example: "  babelftp uploads\n" +
			"  babelftp uploads --tenant acme --json\n" +
			"  babelftp uploads abort acme 2bd806c97f0e00af-6f0c1b2d3e4f5a69788796a5b4c3d2e1-9f86d081884c7d65\n" +
			"  kubectl exec babelftp-0 -- babelftp uploads",
		Args: p.noArguments,
	}
	client := p.addFlags(cmd)
	asJSON := addJSONFlag(cmd)
	tenant := cmd.Flags().String("tenant", "", "only those of this `TENANT`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := client(cmd)
		if err != nil {
			return err
		}
		uploads, all, err := c.Uploads(cmd.Context(), *tenant)
		if err != nil {
			return err
		}
		if all > len(uploads) {
			fmt.Fprintf(cmd.ErrOrStderr(), "babelftp: %d of %d uploads are shown, those of each bucket on which a session has worked last\n", len(uploads), all)
		}
		if *asJSON {
			return writeJSON(cmd.OutOrStdout(), uploads)
		}
		now := time.Now()
		t := newTable(cmd.OutOrStdout(), "TENANT", "USER", "STATE", "BYTES", "LAST", "PATH", "ID")
		for _, u := range uploads {
			bytes := ""
			if u.Bytes != nil {
				bytes = bytesText(*u.Bytes)
			}
			t.row(u.Tenant, u.User, u.State, bytes, ago(u.LastPart, now), u.Path, u.ID)
		}
		return t.flush()
	}
	abort := &cobra.Command{
		Use: "abort TENANT ID", Short: "Abort an interrupted upload",
		Long: "Abort an interrupted upload, and remove its parts. Its user begins anew. An upload on which a session works stays: end the session first.\n" +
			"No file is removed.",
		Example: "  babelftp uploads abort acme 2bd806c97f0e00af-6f0c1b2d3e4f5a69788796a5b4c3d2e1-9f86d081884c7d65",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return p.UsageError(cmd, "write the tenant and one ID, as babelftp uploads shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := client(cmd)
			if err == nil {
				err = c.Abort(cmd.Context(), args[0], args[1])
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is aborted\n", visible(args[1]))
			return err
		},
	}
	cmd.AddCommand(abort)
	return cmd
}
