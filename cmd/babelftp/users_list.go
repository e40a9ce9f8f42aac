package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/storage/state"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// A listedUser is a row of the list.
type listedUser struct {
	Tenant  string `json:"tenant"`
	User    string `json:"user"`
	Status  string `json:"status"` // enabled, disabled or expired
	Expires string `json:"expires,omitempty"`
	Root    string `json:"root"`
	// Source is configuration, users_file, state, or the old FTP server that the user came from.
	Source    string     `json:"source"`
	LastLogin *time.Time `json:"last_login,omitempty"` // nil if unknown
}

func newUsersListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [TENANT] [--config FILE]",
		Short: "Show the users of a configuration",
		Long: "Show the users of a configuration, of all tenants or of one: whether they may log in, and when they expire. " +
			"The last login is the last\n" +
			"login to this replica since it started, if admin_socket is reachable. SOURCE is configuration, users_file, state, or the old FTP server " +
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
		cfg, shared, err := withStoredUsers(cmd, cfg, tenants)
		if err != nil {
			return err
		}
		all := listUsers(cfg, tenants, lastLogins(cmd.Context(), cfg.AdminSocket), time.Now())
		if err := addSources(cfg, shared, all); err != nil {
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

// addSources sets Source to the place that defines the user, or to the old FTP server that the user came from. shared
// is nil without users in the shared state.
func addSources(cfg *config.Config, shared *state.Store, all []listedUser) error {
	type key struct{ tenant, user string }
	sources := map[key]string{}
	add := func(tenant, source string, d *usersfile.Document) {
		for _, user := range d.Names() {
			sources[key{tenant, user}] = cmp.Or(d.MovedFrom(user), source)
		}
	}
	for name, t := range cfg.Tenants {
		if t.UsersStore == config.StateStore && shared != nil {
			for _, item := range shared.Names(usersfile.TenantPrefix(name)) {
				value, _ := shared.Get(item)
				if d, err := usersfile.Parse(value); err == nil {
					add(name, "state", d)
				}
			}
		}
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
			add(name, "users_file", d)
		}
	}
	for i, u := range all {
		all[i].Source = cmp.Or(sources[key{u.Tenant, u.User}], "configuration")
	}
	return nil
}

// withStoredUsers adds the users in the shared state to a configuration, if one of the tenants has any. It prints the
// users who are ignored. The store is nil if there are none.
func withStoredUsers(cmd *cobra.Command, cfg *config.Config, tenants []string) (*config.Config, *state.Store, error) {
	stores := func(name string) bool { return cfg.Tenants[name].UsersStore == config.StateStore }
	if !slices.ContainsFunc(tenants, stores) {
		return cfg, nil, nil
	}
	shared, err := server.OpenState(cmd.Context(), cfg)
	if err == nil {
		err = shared.Sync(cmd.Context())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the users in the shared state: %w", err)
	}
	return mergeStoredUsers(cmd, cfg, shared), shared, nil
}

// mergeStoredUsers adds the users in the shared state to a configuration, and prints the users who are ignored.
func mergeStoredUsers(cmd *cobra.Command, cfg *config.Config, shared *state.Store) *config.Config {
	merged, ignored := usersfile.NewStored(shared).Merge(cfg, nil)
	for _, p := range ignored {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: user %s in the shared state is ignored: %s\n",
			visible(userOf(p.User, p.Tenant)), visible(p.Reason))
	}
	return merged
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
