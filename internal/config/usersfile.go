package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A TenantPlace says where the settings and the users of a tenant are.
type TenantPlace struct {
	// File has the settings of the tenant. Own reports whether it is a file of tenants_dir, which has the keys of this
	// tenant only.
	File string
	Own  bool
	// UsersFile is the path of users_file, or empty. Misplaced reports whether tenants_dir would read it as a tenant.
	UsersFile string
	Misplaced bool
	// UsersStore is users_store, or empty.
	UsersStore UsersStore
	// Free is a value for users_file in File, with a path that tenants_dir does not cover.
	Free string
	// Users has the file and the line of each user in the configuration and in users_file, by normalized name.
	Users map[string]string
}

// TenantPlaces returns the place of each tenant in a configuration. The configuration is not validated, because it may
// be invalid as long as the file has no users.
func TenantPlaces(file string, environ []string) (map[string]*TenantPlace, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration %s: %w", file, yamlconf.WithoutPath(err))
	}
	cfg := Default()
	loader := yamlconf.Loader{Environ: environ, Prefix: environmentPrefix}
	positions, problems := loader.Decode(file, text, cfg)
	if positions == nil {
		return nil, problems
	}
	found := make(map[string]*TenantPlace, len(cfg.Tenants))
	for name, t := range cfg.Tenants {
		p := &TenantPlace{UsersFile: t.UsersFile, UsersStore: t.UsersStore, Users: map[string]string{}}
		at := yamlconf.Path{"tenants", name}
		p.File, _ = positions.Source(at)
		p.Own = p.File != file
		p.Misplaced = t.UsersFile != "" && yamlconf.IsDocument(filepath.Base(t.UsersFile)) &&
			isFolder(filepath.Dir(t.UsersFile), cfg.TenantsDir)
		p.Free = freePath(filepath.Dir(p.File), cfg.TenantsDir, name+"-users.yaml")
		for user := range t.Users {
			source, line := positions.Source(at.Child("users").Child(user))
			p.Users[NormalizeUser(user)] = fmt.Sprintf("%s:%d", source, line)
		}
		found[name] = p
	}
	return found, nil
}

// freePath returns the path, relative to dir, of a file with this name in dir or in the nearest parent directory that
// is not in folders.
func freePath(dir string, folders []string, name string) string {
	path := name
	for isFolder(dir, folders) && absolute(dir) != filepath.Dir(absolute(dir)) {
		path, dir = filepath.Join("..", path), filepath.Dir(absolute(dir))
	}
	return path
}

// isFolder reports whether dir is one of the folders.
func isFolder(dir string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return absolute(folder) == absolute(dir) })
}

// absolute returns an absolute path, or the path itself if the current folder is unknown.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// ParseUserSetting parses KEY=VALUE, where KEY is a key of a user; see [yamlconf.ParseSetting].
func ParseUserSetting(text string) (yamlconf.Setting, error) {
	return yamlconf.ParseSetting(reflect.TypeFor[User](), text)
}

// UserKeys returns the keys of a user; see [yamlconf.KeysOf].
func UserKeys() []string { return yamlconf.KeysOf(reflect.TypeFor[User]()) }

// CompleteUserSetting completes KEY=VALUE; see [yamlconf.CompleteSetting].
func CompleteUserSetting(begun string) []string {
	return yamlconf.CompleteSetting(reflect.TypeFor[User](), begun)
}
