package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

func newPolicyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy TENANT [--config FILE]",
		Short: "Print the minimal IAM policy for a tenant or the shared state",
		Long: "Print the minimal IAM policy (JSON) for the credentials of a tenant. It allows the actions that the configuration " +
			"needs, and access to\nthe objects that the server itself stores in the bucket. The command does not connect to S3.\n\n" +
			"A folder with other credentials or another role needs its own policy: see --folder. With --state, the command prints\n" +
			"the policy for the shared state.\n\n" +
			"With --bucket, it reads no configuration and prints the policy for a tenant with this bucket, users with " +
			"all\npermissions, and default values for all other keys.",
		Example: "  babelftp policy acme --config babelftp.yaml > policy.json\n" +
			"  babelftp policy acme --folder /archive --config babelftp.yaml\n" +
			"  babelftp policy --state --config babelftp.yaml\n" +
			"  babelftp policy --bucket acme-data --prefix inbox/ > policy.json",
	}
	file := addConfigFlag(cmd)
	var b bucketFlags
	b.add(cmd)
	folder := cmd.Flags().String("folder", "", "print the policy for the credentials of the folder at this `DIRECTORY`")
	ofState := cmd.Flags().Bool("state", false, "print the policy for the shared state")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *ofState {
			if len(args) > 0 || b.bucket != "" || *folder != "" {
				return newUsageError(cmd, "--state cannot be combined with TENANT, --bucket or --folder")
			}
			return nil
		}
		if b.bucket != "" {
			if len(args) > 0 || cmd.Flags().Changed("config") || *folder != "" {
				return newUsageError(cmd, "--bucket cannot be combined with TENANT, --config or --folder")
			}
			return nil
		}
		for _, flag := range []string{"prefix", "region", "profile"} {
			if cmd.Flags().Changed(flag) {
				return newUsageError(cmd, "--%s requires --bucket", flag)
			}
		}
		if len(args) != 1 {
			return newUsageError(cmd, "expected one TENANT, --bucket or --state")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if b.bucket != "" {
			cfg, err := b.config()
			if err != nil {
				return err
			}
			return printPolicy(cmd, cfg, flagTenant, "")
		}
		cfg, err := loadConfig(cmd, *file)
		if err != nil {
			return err
		}
		if *ofState {
			return printStatePolicy(cmd, cfg)
		}
		return printPolicy(cmd, cfg, args[0], *folder)
	}
	return cmd
}

// printStatePolicy prints the policy for the shared state.
func printStatePolicy(cmd *cobra.Command, cfg *config.Config) error {
	srv, err := server.New(cmd.Context(), cfg, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	policy, err := srv.StatePolicy()
	if err != nil {
		return err
	}
	return writePolicy(cmd, policy)
}

// writePolicy writes a policy as JSON.
func writePolicy(cmd *cobra.Command, policy s3client.Policy) error {
	out := json.NewEncoder(cmd.OutOrStdout())
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(policy)
}

// bucketFlags describe a tenant without a configuration file.
type bucketFlags struct{ bucket, prefix, region, profile string }

func (b *bucketFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&b.bucket, "bucket", "", "the `BUCKET` of a tenant that is not configured yet")
	flags.StringVar(&b.prefix, "prefix", "", "with --bucket: the `PREFIX` of all keys")
	flags.StringVar(&b.region, "region", "us-east-1", "with --bucket: the `REGION` of the bucket")
	flags.StringVar(&b.profile, "profile", "aws", "with --bucket: the `PROFILE` of the S3 server, as in s3.profile")
}

// flagTenant is the name of the tenant in the configuration that [bucketFlags] make.
const flagTenant = "policy"

// config returns a configuration with the tenant that the flags describe.
func (b *bucketFlags) config() (*config.Config, error) {
	const name = "the command line"
	tenant := map[string]any{"bucket": b.bucket, "users": map[string]any{"user": map[string]any{"disabled": true}}}
	if b.prefix != "" {
		tenant["prefix"] = b.prefix
	}
	text, err := json.Marshal(map[string]any{
		"s3":      map[string]any{"region": b.region, "profile": b.profile},
		"tenants": map[string]any{flagTenant: tenant},
	})
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadWith(name, nil, map[string][]byte{name: text})
	return cfg, inFlags(err)
}

// inFlags replaces the keys in the problems of a configuration made from flags by the names of the flags.
func inFlags(err error) error {
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		return err
	}
	var wrong []error
	for _, p := range problems {
		wrong = append(wrong, fmt.Errorf("--%s: %s", p.Path[strings.LastIndexByte(p.Path, '.')+1:], p.Message))
	}
	return errors.Join(wrong...)
}

// printPolicy prints the policy for the credentials of a tenant or one of its folders.
func printPolicy(cmd *cobra.Command, cfg *config.Config, tenant, folder string) error {
	srv, err := server.New(cmd.Context(), cfg, server.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	whole, ok := srv.Bucket(tenant)
	if !ok {
		return errNoTenant(cfg, tenant)
	}
	all := append([]*s3client.Bucket{whole}, whole.Folders...)
	i := slices.IndexFunc(all, func(b *s3client.Bucket) bool { return b.Folder == folder })
	if i < 0 {
		return fmt.Errorf("tenant %s: unknown folder %q", tenant, folder)
	}
	var reached []*s3client.Bucket
	for _, b := range all {
		if b.SharesCredentials(all[i]) {
			reached = append(reached, b)
		} else if folder == "" {
			fmt.Fprintf(
				cmd.ErrOrStderr(),
				"note: the folder %s uses other credentials: print their policy with --folder %[1]s\n", b.Folder)
		}
	}
	if role := all[i].RoleARN(); role != "" {
		fmt.Fprintf(
			cmd.ErrOrStderr(),
			"note: this is the policy of the role %s; credentials that assume it need sts:AssumeRole, and "+
				"sts:TagSession for session_tags\n", role)
	}
	for _, b := range reached {
		if note := b.PolicyNote(); note != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", note)
		}
	}
	return writePolicy(cmd, s3client.PolicyFor(cmd.Context(), reached...))
}
