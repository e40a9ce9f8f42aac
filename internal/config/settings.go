package config

import (
	"encoding/json"
	"reflect"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Settings are the settings of a user by key, in the form of JSON. They have no hash of a password.
type Settings map[string]any

// Settings returns the settings that are set.
func (u *User) Settings() Settings { return yamlconf.Encode(u) }

// DecodeUser decodes the settings of a user in a users_file or in the shared state. They may have a hash. Relative
// names of files are relative to source.
func DecodeUser(source string, settings map[string]any) (*User, error) {
	const name = "user"
	text, err := json.Marshal(map[string]any{"users": map[string]any{name: settings}}) // valid YAML
	if err != nil {
		return nil, err
	}
	return ParseUser(source, text, name, true)
}

// ParseUserPatch returns the changes that a JSON Merge Patch makes to the settings of a user; see
// [yamlconf.ParsePatch].
func ParseUserPatch(patch map[string]any) ([]yamlconf.Setting, Problems) {
	return yamlconf.ParsePatch(reflect.TypeFor[User](), patch)
}

// NeedsUsers reports whether the configuration would be invalid if the tenant had no users.
func (c *Config) NeedsUsers(tenant string) bool {
	t := c.Tenants[tenant]
	return t != nil && t.UsersStore == "" && !t.Auth.IsSet() && !c.Auth.IsSet()
}
