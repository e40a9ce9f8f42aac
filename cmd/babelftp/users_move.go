package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

func newUsersMoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "move TENANT --to {state | file} [--config FILE]",
		Short: "Move the users of a tenant between a users_file and the shared state",
		Long: "Move all users of a tenant from its users_file to the shared state, or back. The tenant needs both users_file and " +
			"users_store: state\n" +
			"until the move is complete. Comments are kept, and a password_hash_file becomes a password_hash.\n\n" +
			"The users are copied, and after three seconds, when all replicas know the copies, the originals are removed, so that " +
			"users can log in all the time.\nAn interrupted move loses nothing: run the command again. A user whom both places have " +
			"with different settings is not moved, unless you use --replace.",
		Example: "  babelftp users move acme --to state --dry-run\n" +
			"  babelftp users move acme --to state        # then remove users_file from the configuration\n" +
			"  babelftp users move acme --to file         # then remove users_store from the configuration",
		Args: exactly(1, "one TENANT"),
	}
	file := addConfigFlag(cmd)
	flags := cmd.Flags()
	to := flags.String("to", "", "the destination: state or file")
	dryRun := flags.Bool("dry-run", false, "show what would be moved without moving anything")
	replace := flags.Bool("replace", false, "replace users at the destination who have other settings")
	inFile := flags.String("file", "", "with --to file: the `NAME` of the file, if users_file is a directory")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind := usersfile.Kind(*to)
		if kind != usersfile.InFile && kind != usersfile.InState {
			return newUsageError(cmd, "expected --to state or --to file")
		}
		if *inFile != "" && kind != usersfile.InFile {
			return newUsageError(cmd, "--file requires --to file")
		}
		a, err := tenantStore(cmd, *file, args[0], *inFile)
		if err != nil {
			return err
		}
		verb := "moved"
		if *dryRun {
			verb = "would be moved"
		}
		moved, left := 0, 0
		err = a.store.Move(cmd.Context(), usersfile.Move{
			To: kind, Replace: *replace, DryRun: *dryRun,
			Moved: func(user string, from, to usersfile.Place) {
				moved++
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s -> %s\n", visible(userOf(user, a.tenant)), from, to)
			},
			Note: func(text string) {
				left++
				fmt.Fprintln(cmd.ErrOrStderr(), "babelftp:", visible(text))
			},
			Wait: func(ctx context.Context, d time.Duration) {
				select {
				case <-time.After(d):
				case <-ctx.Done():
				}
			},
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s to %s\n", count(moved, "user"), verb, kind)
		if left > 0 {
			return fmt.Errorf("%s not moved completely", count(left, "user or file"))
		}
		return nil
	}
	return cmd
}

// tenantStore returns the store of a tenant with users in the shared state, as an account without a user.
func tenantStore(cmd *cobra.Command, configFile, tenant, inFile string) (account, error) {
	if configFile == "" {
		return account{}, errNoConfig(cmd)
	}
	tenants, err := config.TenantPlaces(configFile, os.Environ())
	if err != nil {
		return account{}, err
	}
	place := tenants[tenant]
	switch {
	case place == nil:
		cfg, err := loadConfig(cmd, configFile)
		if err != nil {
			return account{}, err
		}
		return account{}, errNoTenant(cfg, tenant)
	case place.UsersStore == "":
		return account{}, fmt.Errorf("tenant %s has no users_store: add `users_store: state` to %s first, and keep users_file until the "+
			"move is complete", tenant, place.File)
	case place.UsersFile == "":
		return account{}, fmt.Errorf("tenant %s has no users_file: add `users_file: %s` to %s first, and keep users_store until the "+
			"move is complete", tenant, place.Free, place.File)
	}
	a := account{ctx: cmd.Context(), config: configFile, tenant: tenant, warn: cmd.ErrOrStderr()}
	return a, a.openState(place, inFile)
}
