package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/users/userimport"
)

func newUsersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "users",
		Short:   "Import users from another server",
		Long:    "Import users from another server: see babelftp users import.",
		Example: "  babelftp users import sftpgo dump.json > users.yaml",
		Args:    commandNeeded,
		RunE:    func(*cobra.Command, []string) error { return nil }, // Args refuses every call
	}
	cmd.AddCommand(newUsersImportCommand())
	return cmd
}

func newUsersImportCommand() *cobra.Command {
	importers := map[string]func(text []byte, strip string) (*userimport.Users, error){
		"sftpgo": userimport.SFTPGo, "proftpd": userimport.ProFTPD,
	}
	cmd := &cobra.Command{
		Use:   "import {sftpgo | proftpd} FILE",
		Short: "Print the users of another server as YAML",
		Long: "Print the users of another server as the YAML of users, for a tenant of the configuration or for its " +
			"users_file. FILE is a dump\n" +
			"of SFTPGo (JSON) or an AuthUserFile of ProFTPD (lines like those of passwd); - is standard input.\n\n" +
			"Passwords stay, because their hashes do. Each user gets the home directory as root, without what " +
			"--strip names. Warnings on\n" +
			"standard error say what a configuration cannot express, and which users were left out.",
		Example: "  babelftp users import sftpgo dump.json > users.yaml\n" +
			"  babelftp users import sftpgo --strip /srv/sftpgo/data dump.json > users.yaml\n" +
			"  babelftp users import proftpd --strip /srv/ftp /etc/proftpd/ftpd.passwd > users.yaml",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return newUsageError(cmd, "give the kind of server and one FILE")
			}
			if importers[args[0]] == nil {
				return newUsageError(cmd, "unknown kind of server %q: write sftpgo or proftpd", args[0])
			}
			return nil
		},
	}
	strip := cmd.Flags().String("strip", "/", "the `DIR` of the other server that becomes the root of the tenant")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := readInput(cmd.InOrStdin(), args[1])
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", args[1], yamlconf.WithoutPath(err))
		}
		users, err := importers[args[0]](text, *strip)
		if err != nil {
			return fmt.Errorf("%s: %w", args[1], err)
		}
		for _, warning := range users.Warnings {
			fmt.Fprintf(cmd.ErrOrStderr(), "babelftp: %s\n", warning)
		}
		if users.Count() == 0 {
			return errors.New("no user can be imported")
		}
		out, err := users.YAML()
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(out)
		return err
	}
	return cmd
}

// readInput reads a file, or standard input for "-".
func readInput(stdin io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}
