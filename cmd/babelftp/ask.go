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

// adminSocket is where a server answers whose configuration names no other socket.
const adminSocket = config.DefaultAdminSocket

// howToAsk ends the description of a command that asks a running server.
const howToAsk = "The command asks the server on this machine by its admin_socket, or with --url by admin.listen, also from another one."

var errNoAdminSocket = errors.New(
	"admin_socket is empty, so the server takes no commands: remove the key, or set it, like " + adminSocket)

// adminFlags say which running server a command asks. What it answers is shown so that no text that a client has chosen
// has an effect on the terminal: see [visible].
type adminFlags struct {
	socket, config, url, user, passwordFile, caFile, certFile, keyFile string
}

// A connector makes the client of the server that the flags of a command name.
type connector func(*cobra.Command) (*admin.Client, error)

// runList runs a command that asks for something and shows it: in a table with these columns, or in JSON with --json.
func runList[T any](
	connect connector, asJSON *bool,
	ask func(*admin.Client, context.Context) (T, error), columns string, rows func(*table, T),
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		c, err := connect(cmd)
		if err != nil {
			return err
		}
		all, err := ask(c, cmd.Context())
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

// runChange runs a command that changes something, and says what has happened.
func runChange(
	connect connector, ask func(c *admin.Client, ctx context.Context, args []string) (string, error),
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := connect(cmd)
		if err != nil {
			return err
		}
		happened, err := ask(c, cmd.Context(), args)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), visible(happened))
		return err
	}
}

// addJSONFlag adds --json to a command.
func addJSONFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "write JSON, for scripts")
}

// addAdminFlags adds flags to a command, and returns what makes the client of the server that they name.
func addAdminFlags(cmd *cobra.Command) connector {
	f := &adminFlags{}
	flags := cmd.PersistentFlags()
	f.add(flags)
	flags.StringVar(&f.passwordFile, "password-file", "", "the `FILE` that holds your password")
	flags.StringVar(
		&f.caFile, "ca-file", "",
		"a PEM `FILE` of the authorities to trust for --url (default those of the system)")
	return f.client
}

// add adds the flags that no command has for something else.
func (f *adminFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.socket, "socket", "", "the `PATH` of admin_socket (default "+adminSocket+")")
	flags.StringVarP(&f.config, "config", "c", "", "the configuration `FILE` to read admin_socket from")
	flags.StringVar(&f.url, "url", "", "the `URL` of admin.listen, like https://babelftp.example.com:9122")
	flags.StringVar(&f.user, "as", "", "your `NAME` in admin.users, for --url")
	flags.StringVar(&f.certFile, "cert-file", "", "a PEM `FILE` with a client certificate, instead of a password")
	flags.StringVar(&f.keyFile, "key-file", "", "a PEM `FILE` with its key")
}

// client makes the client.
func (f *adminFlags) client(cmd *cobra.Command) (*admin.Client, error) {
	if f.url != "" {
		if f.socket != "" || f.config != "" {
			return nil, newUsageError(cmd, "--url goes neither with --socket nor with --config")
		}
		return f.remote(cmd)
	}
	for _, flag := range []string{"as", "password-file", "ca-file", "cert-file", "key-file"} {
		if cmd.Flags().Changed(flag) {
			return nil, newUsageError(cmd, "--%s needs --url", flag)
		}
	}
	path := cmp.Or(f.socket, adminSocket)
	if f.config != "" {
		if f.socket != "" {
			return nil, newUsageError(cmd, "--socket and --config do not go together")
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

// remote makes the client of --url.
func (f *adminFlags) remote(cmd *cobra.Command) (*admin.Client, error) {
	if f.user == "" && f.certFile == "" || (f.user == "") != (f.passwordFile == "") || (f.certFile == "") != (f.keyFile == "") {
		return nil, newUsageError(cmd, "--url needs --as and --password-file, or --cert-file and --key-file")
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
