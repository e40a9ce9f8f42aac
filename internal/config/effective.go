package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Limits of [Config.Effective], so that its text fits on a page.
const (
	maxShownTenants = 100
	maxShownUsers   = 20 // of each tenant
)

// Effective returns the configuration in use as YAML, without secrets. Defaults of a tenant or a user are merged into
// its section, and settings without a value are left out. If there are many tenants, it has the first ones, or only the
// one with the given name. ok is false if that does not exist.
func (c *Config) Effective(tenant string) (text string, ok bool, err error) {
	shown := *c
	shown.Tenants = map[string]*Tenant{}
	names := slices.Sorted(maps.Keys(c.Tenants))
	if tenant != "" {
		names = []string{tenant}
		if c.Tenants[tenant] == nil {
			return "", false, nil
		}
	}
	var notes strings.Builder
	if more := len(names) - maxShownTenants; more > 0 {
		fmt.Fprintf(&notes, "# %d more tenants are not shown.\n", more)
		names = names[:maxShownTenants]
	}
	for _, name := range names {
		t := *c.Tenants[name]
		if more := len(t.Users) - maxShownUsers; more > 0 {
			fmt.Fprintf(&notes, "# %d more users of %s are not shown.\n", more, name)
			users := map[string]*User{}
			for _, user := range slices.Sorted(maps.Keys(t.Users))[:maxShownUsers] {
				users[user] = t.Users[user]
			}
			t.Users = users
		}
		shown.Tenants[name] = &t
	}
	if text, err = yamlconf.Show(&shown, Default()); err != nil {
		return "", false, err
	}
	return notes.String() + text, true, nil
}
