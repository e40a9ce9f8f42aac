package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config"
)

// adminSocket is the default path of the admin socket.
const adminSocket = config.DefaultAdminSocket

// howToConnect ends the description of a command that talks to a running server.
const howToConnect = "The command connects to the admin_socket of the server on this machine, or with --url to the admin.listen of any server."

var errNoAdminSocket = errors.New(
	"admin_socket is empty, so the server accepts no commands: remove the key, or set it to a path such as " + adminSocket)

// adminFlags select the running server that a command talks to. Commands print the server's responses with
// [visible], because clients choose some of the texts.
type adminFlags struct {
	socket, config, url, user, passwordFile, caFile, certFile, keyFile string
}

// A connector returns a client of the server that the flags select.
type connector func(*cobra.Command) (*admin.Client, error)

// runList returns the RunE of a command that fetches a value and prints it as a table with these columns, or
// as JSON with --json.
func runList[T any](
	connect connector, asJSON *bool,
	fetch func(*admin.Client, context.Context) (T, error), columns string, rows func(*table, T),
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		c, err := connect(cmd)
		if err != nil {
			return err
		}
		all, err := fetch(c, cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(cmd.OutOrStdout(), all)
		}
		t := newTable(cmd.OutOrStdout(), strings.Fields(columns)...)
		rows(t, all)
		return t.flush()
	}
}

// runChange returns the RunE of a command that changes something and prints the result.
func runChange(
	connect connector, call func(c *admin.Client, ctx context.Context, args []string) (string, error),
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := connect(cmd)
		if err != nil {
			return err
		}
		result, err := call(c, cmd.Context(), args)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), visible(result))
		return err
	}
}

// addJSONFlag adds --json to a command.
func addJSONFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "write JSON, for scripts")
}

// addAdminFlags adds flags that select a server. The connector returns a client of that server.
func addAdminFlags(cmd *cobra.Command) connector {
	f := &adminFlags{}
	flags := cmd.PersistentFlags()
	f.add(flags)
	flags.StringVar(&f.passwordFile, "password-file", "", "the `FILE` with your password")
	flags.StringVar(
		&f.caFile, "ca-file", "",
		"a PEM `FILE` with the CAs to trust for --url (default system CAs)")
	return f.client
}

// add adds the flags whose names no other command uses with another meaning.
func (f *adminFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.socket, "socket", "", "the `PATH` of admin_socket (default "+adminSocket+")")
	flags.StringVarP(&f.config, "config", "c", "", "the configuration `FILE` to read admin_socket from")
	flags.StringVar(&f.url, "url", "", "the `URL` of admin.listen, such as https://babelftp.example.com:9122")
	flags.StringVar(&f.user, "as", "", "your `NAME` in admin.users, for --url")
	flags.StringVar(&f.certFile, "cert-file", "", "a PEM `FILE` with a client certificate, instead of a password")
	flags.StringVar(&f.keyFile, "key-file", "", "a PEM `FILE` with its key")
}

// client returns a client of the selected server.
func (f *adminFlags) client(cmd *cobra.Command) (*admin.Client, error) {
	if f.url != "" {
		if f.socket != "" || f.config != "" {
			return nil, newUsageError(cmd, "--url cannot be combined with --socket or --config")
		}
		return f.remote(cmd)
	}
	for _, flag := range []string{"as", "password-file", "ca-file", "cert-file", "key-file"} {
		if cmd.Flags().Changed(flag) {
			return nil, newUsageError(cmd, "--%s requires --url", flag)
		}
	}
	path := cmp.Or(f.socket, adminSocket)
	if f.config != "" {
		if f.socket != "" {
			return nil, newUsageError(cmd, "--socket and --config cannot be combined")
		}
		cfg, err := loadConfig(cmd, f.config)
		if err != nil {
			return nil, err
		}
		if path = cfg.AdminSocket; path == "" {
			return nil, errNoAdminSocket
		}
	}
	return admin.NewClient(path), nil
}

// remote returns a client of the server at --url.
func (f *adminFlags) remote(cmd *cobra.Command) (*admin.Client, error) {
	if f.user == "" && f.certFile == "" || (f.user == "") != (f.passwordFile == "") || (f.certFile == "") != (f.keyFile == "") {
		return nil, newUsageError(cmd, "--url requires --as and --password-file, or --cert-file and --key-file")
	}
	authorities, err := config.Authorities(f.caFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}
	if f.certFile != "" {
		pair, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
		if err != nil {
			return nil, fmt.Errorf("--cert-file %s with --key-file %s: %w", f.certFile, f.keyFile, err)
		}
		secure.Certificates = []tls.Certificate{pair}
	}
	password := ""
	if f.passwordFile != "" {
		if password, err = passwordInFile(f.passwordFile); err != nil {
			return nil, err
		}
	}
	return admin.NewRemoteClient(f.url, f.user, password, secure)
}
