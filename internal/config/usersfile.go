package config

import (
	"fmt"
	"os"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// UsersFiles returns the path of the users_file of each tenant, or an empty string for tenants without one. The
// configuration is not validated, because it may be invalid as long as the file has no users.
func UsersFiles(file string, environ []string) (map[string]string, error) {
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
	found := make(map[string]string, len(cfg.Tenants))
	for name, t := range cfg.Tenants {
		found[name] = t.UsersFile
	}
	return found, nil
}
