package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

func newUsersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "users",
		Short: "Add, change, list and import users",
		Long: "Add, change and remove users in a users_file or in the shared state, list the users of a configuration, and import users " +
			"from another server.",
		Example: "  babelftp users add alice@acme --root /alice\n" +
			"  babelftp users set alice@acme quota=10GiB language=fr expires=2027-01-31\n" +
			"  babelftp users passwd alice@acme\n" +
			"  babelftp users disable alice@acme\n" +
			"  babelftp users list\n" +
			"  babelftp users move acme --to state\n" +
			"  babelftp users import sftpgo --strip /srv/sftpgo/data dump.json > users.yaml",
		Args: commandNeeded,
		RunE: func(*cobra.Command, []string) error { return nil }, // Args always returns an error
	}
	cmd.AddCommand(
		newUsersAddCommand(), newUsersPasswdCommand(), newUsersDisableCommand(), newUsersEnableCommand(),
		newUsersListCommand(), newUsersRemoveCommand(), newUsersSetCommand(), newUsersMoveCommand(),
		newUsersImportCommand(),
	)
	return cmd
}

// An importer converts the users of another FTP server.
type importer func(text []byte, strip string) (*usersfile.Users, error)

func newUsersImportCommand() *cobra.Command {
	var vsftpdConf, vsftpdUsers string
	importers := map[string]importer{
		"sftpgo": usersfile.SFTPGo, "proftpd": usersfile.ProFTPD, "pureftpd": usersfile.PureFTPd,
		"vsftpd": func(text []byte, strip string) (*usersfile.Users, error) {
			return importVSFTPD(text, strip, vsftpdConf, vsftpdUsers)
		},
	}
	kinds := func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // FILE
		}
		return slices.Sorted(maps.Keys(importers)), cobra.ShellCompDirectiveNoFileComp
	}
	cmd := &cobra.Command{
		Use:   "import {sftpgo | proftpd | pureftpd | vsftpd} FILE",
		Short: "Print the users of another server as YAML",
		Long: "Print the users of another server as the YAML of users, for a tenant of the configuration or for its " +
			"users_file.\n\n" +
			"FILE is a JSON dump from SFTPGo, an AuthUserFile of ProFTPD, or " +
			"pureftpd.passwd. For vsftpd, it has one line\n" +
			"with each name followed by one with the password, or lines with NAME:HASH from htpasswd. - is standard input.\n\n" +
			"Passwords are kept. Each user gets the home directory, without the prefix in --strip, as root, and keeps rates, quotas, " +
			"sessions, networks and expiry.\n" +
			"Users with other restrictions or without a usable password are disabled. A comment above the user " +
			"and a line on standard error\n" +
			"give the reason, and list everything else that was not imported.",
		Example: "  babelftp users import sftpgo --strip /srv/sftpgo/data dump.json > users.yaml\n" +
			"  babelftp users import proftpd --strip /srv/ftp /etc/proftpd/ftpd.passwd > users.yaml\n" +
			"  babelftp users import pureftpd --strip /srv/ftp /etc/pure-ftpd/pureftpd.passwd > users.yaml\n" +
			"  babelftp users import vsftpd --strip /srv/ftp --vsftpd-conf /etc/vsftpd.conf \\\n" +
			"    --vsftpd-users /etc/vsftpd/users virtual-users.txt > users.yaml",
		ValidArgsFunction: kinds,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return newUsageError(cmd, "expected the kind of server and one FILE")
			}
			if importers[args[0]] == nil {
				return newUsageError(cmd, "unknown kind of server %q: want sftpgo, proftpd, pureftpd or vsftpd", args[0])
			}
			if args[0] != "vsftpd" && vsftpdConf+vsftpdUsers != "" {
				return newUsageError(cmd, "--vsftpd-conf and --vsftpd-users only apply to vsftpd")
			}
			return nil
		},
	}
	strip := cmd.Flags().String("strip", "/", "the `DIR` on the other server that becomes the root of the tenant")
	cmd.Flags().StringVar(&vsftpdConf, "vsftpd-conf", "", "the `FILE` vsftpd.conf, with local_root and permissions of all "+
		"users")
	cmd.Flags().StringVar(&vsftpdUsers, "vsftpd-users", "", "the `DIR` user_config_dir, with a settings file for each "+
		"user (default user_config_dir in --vsftpd-conf)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name := args[1]
		text, err := readInput(cmd.InOrStdin(), name)
		if name == "-" {
			name = "standard input"
		}
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", name, yamlconf.WithoutPath(err))
		}
		users, err := importers[args[0]](text, *strip)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, warning := range users.Warnings {
			fmt.Fprintf(cmd.ErrOrStderr(), "babelftp: %s\n", warning)
		}
		if users.Count() == 0 {
			return fmt.Errorf("no users to import in %s", name)
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

// importVSFTPD converts the users of vsftpd. It reads vsftpd.conf and the files in user_config_dir.
func importVSFTPD(text []byte, strip, conf, dir string) (*usersfile.Users, error) {
	cfg := usersfile.VSFTPDConfig{Hash: passwordhash.New}
	if conf != "" {
		var err error
		if cfg.All, err = os.ReadFile(conf); err != nil {
			return nil, fmt.Errorf("cannot read --vsftpd-conf %s: %w", conf, yamlconf.WithoutPath(err))
		}
	}
	cfg.User = func(configured, name string) ([]byte, error) {
		from := cmp.Or(dir, configured)
		if from == "" || strings.ContainsRune(name, filepath.Separator) || name == "." || name == ".." {
			return nil, nil
		}
		if _, err := os.Stat(from); err != nil { // or all users would silently lose their restrictions
			return nil, fmt.Errorf("cannot read user_config_dir %s: %w: pass the directory with --vsftpd-users", from,
				yamlconf.WithoutPath(err))
		}
		own, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return own, err
	}
	return usersfile.VSFTPD(text, strip, cfg)
}

// readInput reads a file, or standard input for "-".
func readInput(stdin io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}
