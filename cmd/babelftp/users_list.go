package main

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// A listedUser is a row of the list.
type listedUser struct {
	Tenant  string `json:"tenant"`
	User    string `json:"user"`
	Status  string `json:"status"` // enabled, disabled or expired
	Expires string `json:"expires,omitempty"`
	Root    string `json:"root"`
	// Source is configuration, users_file, or the old FTP server that the user came from.
	Source    string     `json:"source"`
	LastLogin *time.Time `json:"last_login,omitempty"` // nil if unknown
}

func newUsersListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [TENANT] [--config FILE]",
		Short: "Show the users of a configuration",
		Long: "Show the users of a configuration, of all tenants or of one: whether they may log in, and when they expire. " +
			"The last login is the last\n" +
			"login to this replica since it started, if admin_socket is reachable. SOURCE is configuration, users_file, or the old FTP server " +
			"(auth.ftp) that the user was migrated from.",
		Example: "  babelftp users list\n" +
			"  babelftp users list acme --config babelftp.yaml\n" +
			"  babelftp users list --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return newUsageError(cmd, "expected at most one TENANT")
			}
			return nil
		},
	}
	file := addConfigFlag(cmd)
	asJSON := addJSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := loadConfig(cmd, *file)
		if err != nil {
			return err
		}
		tenants := slices.Sorted(maps.Keys(cfg.Tenants))
		if len(args) == 1 {
			if cfg.Tenants[args[0]] == nil {
				return errNoTenant(cfg, args[0])
			}
			tenants = args
		}
		all := listUsers(cfg, tenants, lastLogins(cmd.Context(), cfg.AdminSocket), time.Now())
		if err := addSources(cfg, all); err != nil {
			return err
		}
		if *asJSON {
			return writeJSON(cmd.OutOrStdout(), all)
		}
		t := newTable(cmd.OutOrStdout(), "USER", "STATUS", "EXPIRES", "ROOT", "SOURCE", "LAST LOGIN")
		for _, u := range all {
			last := ""
			if u.LastLogin != nil {
				last = u.LastLogin.Format(time.RFC3339)
			}
			t.row(userOf(u.User, u.Tenant), u.Status, u.Expires, u.Root, u.Source, last)
		}
		return t.flush()
	}
	return cmd
}

// listUsers returns the users of the given tenants, sorted by tenant and name.
func listUsers(cfg *config.Config, tenants []string, last map[string]time.Time, now time.Time) []listedUser {
	all := []listedUser{}
	for _, tenant := range tenants {
		users := cfg.Tenants[tenant].Users
		for _, name := range slices.Sorted(maps.Keys(users)) {
			u := users[name]
			listed := listedUser{
				Tenant: tenant, User: config.NormalizeUser(name), Status: "enabled", Expires: u.Expires.String(),
				Root: u.Root,
			}
			switch {
			case u.Disabled:
				listed.Status = "disabled"
			case u.Expires.Passed(now):
				listed.Status = "expired"
			}
			if listed.Root == "" {
				listed.Root = "/"
			}
			if at, known := last[userOf(listed.User, tenant)]; known {
				listed.LastLogin = &at
			}
			all = append(all, listed)
		}
	}
	return all
}

// addSources sets Source to the place that defines the user, or to the old FTP server that the user came from.
func addSources(cfg *config.Config, all []listedUser) error {
	documents := map[string][]*usersfile.Document{} // by tenant
	for name, t := range cfg.Tenants {
		if t.UsersFile == "" {
			continue
		}
		files, err := usersfile.Files(t.UsersFile)
		if err != nil {
			return err
		}
		for _, file := range files {
			d, err := usersfile.Read(file)
			if err != nil {
				return err
			}
			documents[name] = append(documents[name], d)
		}
	}
	for i, u := range all {
		all[i].Source = "configuration"
		for _, d := range documents[u.Tenant] {
			if d.Has(u.User) {
				all[i].Source = cmp.Or(d.MovedFrom(u.User), "users_file")
			}
		}
	}
	return nil
}

// lastLoginsTime limits the time of the request for the last logins.
const lastLoginsTime = 5 * time.Second

// lastLogins returns the last logins that a running server knows, by USER@TENANT. It returns nil if no server
// is running.
func lastLogins(ctx context.Context, socket string) map[string]time.Time {
	if _, err := os.Stat(socket); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lastLoginsTime)
	defer cancel()
	known, err := admin.NewClient(socket).Users(ctx)
	if err != nil {
		return nil
	}
	last := make(map[string]time.Time, len(known))
	for _, u := range known {
		if u.LastLogin != nil {
			last[userOf(u.Name, u.Tenant)] = *u.LastLogin
		}
	}
	return last
}
