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
		Long: "Add, change and remove the users of a users_file, list those of a configuration, and import those of " +
			"another server.",
		Example: "  babelftp users add alice@acme --root /alice\n" +
			"  babelftp users passwd alice@acme\n" +
			"  babelftp users disable alice@acme\n" +
			"  babelftp users list\n" +
			"  babelftp users import sftpgo --strip /srv/sftpgo/data dump.json > users.yaml",
		Args: commandNeeded,
		RunE: func(*cobra.Command, []string) error { return nil }, // Args refuses every call
	}
	cmd.AddCommand(
		newUsersAddCommand(), newUsersPasswdCommand(), newUsersDisableCommand(), newUsersEnableCommand(),
		newUsersListCommand(), newUsersRemoveCommand(), newUsersImportCommand(),
	)
	return cmd
}

// An importer reads the users of another kind of server.
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
			return nil, cobra.ShellCompDirectiveDefault // the FILE
		}
		return slices.Sorted(maps.Keys(importers)), cobra.ShellCompDirectiveNoFileComp
	}
	cmd := &cobra.Command{
		Use:   "import {sftpgo | proftpd | pureftpd | vsftpd} FILE",
		Short: "Print the users of another server as YAML",
		Long: "Print the users of another server as the YAML of users, for a tenant of the configuration or for its " +
			"users_file.\n\n" +
			"FILE is a dump of SFTPGo (JSON), an AuthUserFile of ProFTPD, or " +
			"pureftpd.passwd. For vsftpd it has a line for\n" +
			"each name, and one for its password, or lines of NAME:HASH as htpasswd writes them. A - is standard input.\n\n" +
			"Passwords stay. Each user gets the home directory as root, without what --strip names, and the rates, quotas, " +
			"sessions, networks and expiry\n" +
			"that it had. Users with other restrictions, or without a usable password, are disabled. A comment above the user, " +
			"and a line on standard error,\n" +
			"gives the reason, and everything else that was not imported.",
		Example: "  babelftp users import sftpgo --strip /srv/sftpgo/data dump.json > users.yaml\n" +
			"  babelftp users import proftpd --strip /srv/ftp /etc/proftpd/ftpd.passwd > users.yaml\n" +
			"  babelftp users import pureftpd --strip /srv/ftp /etc/pure-ftpd/pureftpd.passwd > users.yaml\n" +
			"  babelftp users import vsftpd --strip /srv/ftp --vsftpd-conf /etc/vsftpd.conf \\\n" +
			"    --vsftpd-users /etc/vsftpd/users virtual-users.txt > users.yaml",
		ValidArgsFunction: kinds,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return newUsageError(cmd, "give the kind of server and one FILE")
			}
			if importers[args[0]] == nil {
				return newUsageError(cmd, "unknown kind of server %q: write sftpgo, proftpd, pureftpd or vsftpd", args[0])
			}
			if args[0] != "vsftpd" && vsftpdConf+vsftpdUsers != "" {
				return newUsageError(cmd, "--vsftpd-conf and --vsftpd-users are for vsftpd only")
			}
			return nil
		},
	}
	strip := cmd.Flags().String("strip", "/", "the `DIR` of the other server that becomes the root of the tenant")
	cmd.Flags().StringVar(&vsftpdConf, "vsftpd-conf", "", "the `FILE` vsftpd.conf, whose local_root and permissions all "+
		"users have")
	cmd.Flags().StringVar(&vsftpdUsers, "vsftpd-users", "", "the `DIR` user_config_dir, with a file of settings for each "+
		"user (default that of --vsftpd-conf)")
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
			return fmt.Errorf("%s has no user that can be imported", name)
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

// importVSFTPD reads the users of vsftpd with its configuration, and the files of its users.
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
		if _, err := os.Stat(from); err != nil { // the restrictions of all users would be lost
			return nil, fmt.Errorf("cannot read user_config_dir %s: %w: name the folder by --vsftpd-users", from,
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
