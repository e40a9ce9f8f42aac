package config

import (
	"fmt"
	"os"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// UsersFiles finds where each tenant of a configuration has users_file, as a pathname; it is empty for a tenant without
// one. Nothing else of the configuration need be right, such as where the file has no users yet.
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
