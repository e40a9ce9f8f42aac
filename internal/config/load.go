package config

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/reload"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A Loader loads a configuration repeatedly. It returns the same [Tenant] for a tenant that is unchanged, including
// the files that it names. Use [NewLoader] to create one.
type Loader struct {
	file         string
	environ      []string
	replacements map[string][]byte // replaces the content of these files
	sources      *yamlconf.Sources // read by the last attempt
	last         *Config           // the last valid configuration
}

// loaded holds the data that a Loader remembers about a configuration.
type loaded struct {
	bundle       *i18n.Bundle
	invalidTexts Problems                     // invalid messages of tenants
	catalogs     [sha256.Size]byte            // hash of the message catalogs
	tenantFiles  map[string][sha256.Size]byte // hashes of the files that a tenant names, by tenant
	auth         *Auth                        // the same pointer as long as nothing changes
	authFiles    [sha256.Size]byte            // hash of the files that auth names
	defaults     Tenant                       // tenant_defaults, for custom resources
	defaultFiles [sha256.Size]byte            // hash of the files that defaults names
	all          [sha256.Size]byte
	atStart      map[string][sha256.Size]byte // hashes of files that are read only at startup, by key
}

// gcPercent is the GOGC value during loading. Loading thousands of tenants creates much short-lived garbage, and with
// the default of 100 the heap would double.
const gcPercent = 30

// collectOften sets GOGC to gcPercent until restore is called. It keeps a lower value, and GOGC=off, which is used
// together with GOMEMLIMIT.
func collectOften() (restore func()) {
	before := debug.SetGCPercent(gcPercent)
	if before < gcPercent { // off is negative
		debug.SetGCPercent(before)
		return func() {}
	}
	return func() { debug.SetGCPercent(before) }
}

// NewLoader returns a Loader for a file and an environment, which has the format of os.Environ.
func NewLoader(file string, environ []string) *Loader {
	return &Loader{file: file, environ: environ, sources: yamlconf.NewSources()}
}

// Load loads and validates the configuration in a file and an environment, which has the format of os.Environ. Errors
// in the configuration are returned as [Problems].
func Load(file string, environ []string) (*Config, error) { return NewLoader(file, environ).Load() }

// LoadWith is like [Load], but replaces the content of the files in replacements, which need not exist.
func LoadWith(file string, environ []string, replacements map[string][]byte) (*Config, error) {
	l := NewLoader(file, environ)
	l.replacements = replacements
	return l.Load()
}

// Load loads and validates the configuration again. If it fails, the last valid configuration is still used to find
// unchanged tenants. It must not be called concurrently, because it changes GOGC.
func (l *Loader) Load() (*Config, error) {
	defer collectOften()()
	l.sources = yamlconf.SourcesWith(l.replacements)
	text, err := l.sources.ReadFile(l.file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration %s: %w", l.file, yamlconf.WithoutPath(err))
	}
	return l.parse(text)
}

// Changed reports whether a file has changed since the last attempt.
func (l *Loader) Changed() bool { return l.sources.Changed() }

// Files returns the files and folders that the last attempt read: the configuration and everything that it names.
func (l *Loader) Files() []string { return l.sources.Names() }

// Hash returns a hash of all files of the configuration, or zero if it was not loaded by a Loader.
func (c *Config) Hash() [sha256.Size]byte { return c.loaded.all }

// parse parses and validates the content of the file.
func (l *Loader) parse(text []byte) (*Config, error) {
	cfg := Default()
	loader := yamlconf.Loader{
		Environ: l.environ, Prefix: environmentPrefix, Sources: l.sources,
	}
	positions, problems := loader.Decode(l.file, text, cfg)
	if positions == nil {
		return nil, problems
	}
	cfg.loaded.defaults, cfg.TenantDefaults = cfg.TenantDefaults, Tenant{} // already merged into each tenant
	cfg.positions = positions
	cfg.fillIn(positions)
	cfg.normalize()
	l.note(cfg)
	if l.last != nil && l.last.loaded.catalogs == cfg.loaded.catalogs {
		cfg.loaded.bundle = l.last.loaded.bundle
	}
	checked := cfg.validate()
	cfg.loaded.bundle, cfg.loaded.invalidTexts = checked.bundle, checked.invalidTexts
	if problems = append(problems, checked.problems...); len(problems) > 0 {
		problems = append(problems, cfg.RefusedTexts()...) // report them as well
		problems.Sort()
		return nil, problems
	}
	cfg.positions, cfg.loaded.auth = nil, &cfg.Auth
	if l.last != nil {
		cfg.keepTenants(l.last)
	}
	l.last = cfg
	return cfg, nil
}

// keepTenants reuses unchanged tenants and the unchanged auth section of the previous configuration.
func (c *Config) keepTenants(other *Config) {
	reload.Keep(c.Tenants, other.Tenants, func(name string, t, before *Tenant) bool {
		return c.loaded.tenantFiles[name] == other.loaded.tenantFiles[name] && reflect.DeepEqual(t, before)
	})
	before := other.ServerAuth()
	if c.loaded.authFiles == other.loaded.authFiles && reflect.DeepEqual(before, c.ServerAuth()) {
		c.loaded.auth = before
	}
}

// note records the files that the configuration names, with hashes of their content.
func (l *Loader) note(cfg *Config) {
	catalogs := yamlconf.NewSources()
	if dir := cfg.LocalesDir; dir != "" {
		entries, _ := catalogs.ReadDir(dir) // errors are reported when the catalogs are loaded
		for _, e := range entries {
			_, _ = catalogs.ReadFile(filepath.Join(dir, e.Name(), "messages.gotext.json"))
		}
	}
	cfg.loaded.catalogs = catalogs.Sum()
	l.sources.Add(catalogs)
	for _, file := range cfg.files() {
		l.noteFile(*file)
	}
	cfg.loaded.atStart = map[string][sha256.Size]byte{}
	for key, file := range cfg.filesAtStart() {
		cfg.loaded.atStart[key] = l.sources.SumOf(*file)
	}
	cfg.loaded.tenantFiles = map[string][sha256.Size]byte{}
	for name, t := range cfg.Tenants {
		cfg.loaded.tenantFiles[name] = l.noteAll(t.files())
	}
	cfg.loaded.authFiles = l.noteAll(cfg.Auth.files())
	if cfg.Kubernetes.IsSet() {
		defaults := &cfg.loaded.defaults
		cfg.loaded.defaultFiles = l.noteAll(append(defaults.files(), &defaults.CAFile, &cfg.CAFile))
	}
	cfg.loaded.all = l.sources.Sum()
}

// noteAll records files and returns a hash of their content.
func (l *Loader) noteAll(files []*string) [sha256.Size]byte {
	all := sha256.New()
	for _, file := range files {
		l.noteFile(*file)
		sum := l.sources.SumOf(*file)
		all.Write(sum[:])
	}
	return [sha256.Size]byte(all.Sum(nil))
}

// noteFile records a file. A file that cannot be read counts as empty; validation reports the error.
func (l *Loader) noteFile(name string) {
	if name != "" {
		_, _ = l.sources.ReadFile(name)
	}
}

// files returns the values of the server that are names of files.
func (c *Config) files() []*string {
	return slices.AppendSeq(append(c.TLS.files(), c.Admin.files()...), maps.Values(c.filesAtStart()))
}

// filesAtStart returns the values that name files which are read only at startup, by key.
func (c *Config) filesAtStart() map[string]*string {
	if c.TLS.ACME.CAFile == "" && c.Audit.Webhook.CAFile == "" {
		return nil
	}
	return map[string]*string{"ca_file": &c.CAFile}
}

// files returns the values of the tenant that are names of files.
func (t *Tenant) files() []*string {
	return append(append(t.TLS.files(), t.Auth.files()...), &t.Webhook.CAFile, &t.Inspect.Hook.CAFile)
}

// KeepFiles records that the server keeps using the files that it read at startup with another configuration. It
// returns the keys of files that have changed since.
func (c *Config) KeepFiles(read *Config) (keys []string) {
	for key, sum := range c.loaded.atStart {
		if sum != read.loaded.atStart[key] {
			keys = append(keys, key)
		}
	}
	c.loaded.atStart = read.loaded.atStart
	slices.Sort(keys)
	return keys
}

// Bundle loads the built-in message catalogs and those in LocalesDir.
func (c *Config) Bundle() (*i18n.Bundle, error) {
	switch {
	case c.loaded.bundle != nil:
		return c.loaded.bundle, nil
	case c.LocalesDir == "":
		return i18n.Load()
	}
	return i18n.Load(os.DirFS(c.LocalesDir))
}
