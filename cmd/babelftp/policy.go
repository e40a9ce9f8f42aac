package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

func newPolicyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy TENANT [--config FILE]",
		Short: "Print the minimal IAM policy for a tenant",
		Long: "Print the minimal IAM policy (JSON) for the credentials of a tenant. It allows what the configuration " +
			"uses, and what\nthe server itself keeps in the bucket. The command asks no S3 server.\n\n" +
			"A folder with other credentials or another role needs a policy of its own: see --folder.",
		Example: "  babelftp policy acme --config babelftp.yaml > policy.json\n" +
			"  babelftp policy acme --folder /archive --config babelftp.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return newUsageError(cmd, "give one TENANT")
			}
			return nil
		},
	}
	file := addConfigFlag(cmd)
	folder := cmd.Flags().String("folder", "", "the `DIRECTORY` of a folder: print the policy for its credentials")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := loadConfig(cmd, *file)
		if err != nil {
			return err
		}
		srv, err := server.New(cmd.Context(), cfg, server.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		whole, ok := srv.Bucket(args[0])
		if !ok {
			return errNoTenant(cfg, args[0])
		}
		all := append([]*s3client.Bucket{whole}, whole.Folders...)
		i := slices.IndexFunc(all, func(b *s3client.Bucket) bool { return b.Folder == *folder })
		if i < 0 {
			return fmt.Errorf("tenant %s has no folder %q", args[0], *folder)
		}
		var reached []*s3client.Bucket
		for _, b := range all {
			if b.SharesCredentials(all[i]) {
				reached = append(reached, b)
			} else if *folder == "" {
				fmt.Fprintf(
					cmd.ErrOrStderr(),
					"note: other credentials reach the folder %s: print their policy with --folder %[1]s\n", b.Folder)
			}
		}
		if role := all[i].RoleARN(); role != "" {
			fmt.Fprintf(
				cmd.ErrOrStderr(),
				"note: this is the policy of the role %s; who assumes it needs sts:AssumeRole, and sts:TagSession "+
					"for session_tags\n", role)
		}
		for _, b := range reached {
			if note := b.PolicyNote(); note != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", note)
			}
		}
		out := json.NewEncoder(cmd.OutOrStdout())
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		return out.Encode(s3client.PolicyFor(cmd.Context(), reached...))
	}
	return cmd
}
