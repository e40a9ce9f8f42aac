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

// A Loader loads a configuration again and again. A tenant that has not changed, nor the files that it names, is the
// same [Tenant] as before. The zero value is not valid: make one with [NewLoader].
type Loader struct {
	file    string
	environ []string
	instead map[string][]byte // contents of files in place of their own
	sources *yamlconf.Sources // of the last attempt
	last    *Config           // that was valid
}

// loaded is what a Loader knows of a configuration.
type loaded struct {
	bundle      *i18n.Bundle
	refused     Problems                     // with texts of tenants
	catalogues  [sha256.Size]byte            // hash of the catalogues
	tenantFiles map[string][sha256.Size]byte // hashes of the files that a tenant names, by tenant
	auth        *Auth                        // the same pointer while nothing changes
	authFiles   [sha256.Size]byte            // hash of the files that it names
	all         [sha256.Size]byte
	atStart     map[string][sha256.Size]byte // hashes of files that are read only when the server starts, by key
}

// gcPercent is GOGC while a configuration is loaded. The nodes of thousands of tenants live for a second, next to all
// that a server keeps. With the usual 100 the heap would grow to twice the size of both.
const gcPercent = 30

// collectOften sets GOGC to gcPercent until restore is called. It leaves a lower GOGC as it is, and GOGC=off, with
// which operators set GOMEMLIMIT.
func collectOften() (restore func()) {
	before := debug.SetGCPercent(gcPercent)
	if before < gcPercent { // off is negative
		debug.SetGCPercent(before)
		return func() {}
	}
	return func() { debug.SetGCPercent(before) }
}

// NewLoader loads the configuration in file and in the environment, which is given as os.Environ gives it.
func NewLoader(file string, environ []string) *Loader {
	return &Loader{file: file, environ: environ, sources: yamlconf.NewSources()}
}

// Load reads the configuration in file and in the environment, which is given as os.Environ gives it, and validates
// it. What is wrong with the configuration is returned as [Problems].
func Load(file string, environ []string) (*Config, error) { return NewLoader(file, environ).Load() }

// LoadWith is [Load] where the files that instead names have the content there. They need not exist.
func LoadWith(file string, environ []string, instead map[string][]byte) (*Config, error) {
	l := NewLoader(file, environ)
	l.instead = instead
	return l.Load()
}

// Load is [Load]. An error changes nothing of what the Loader knows of the last valid configuration. One goroutine at a
// time may load, because the garbage collector runs more often meanwhile.
func (l *Loader) Load() (*Config, error) {
	defer collectOften()()
	l.sources = yamlconf.SourcesWith(l.instead)
	text, err := l.sources.ReadFile(l.file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration %s: %w", l.file, yamlconf.WithoutPath(err))
	}
	return l.parse(text)
}

// Changed reports whether a file of the last attempt has another content now.
func (l *Loader) Changed() bool { return l.sources.Changed() }

// Files are the files and folders of the last attempt: the configuration, and what it names.
func (l *Loader) Files() []string { return l.sources.Names() }

// Hash is a hash of all files of the configuration. It is zero for a configuration that was not loaded.
func (c *Config) Hash() [sha256.Size]byte { return c.loaded.all }

// parse reads the configuration in text, the content of the file.
func (l *Loader) parse(text []byte) (*Config, error) {
	cfg := Default()
	loader := yamlconf.Loader{
		Environ: l.environ, Prefix: environmentPrefix, Sources: l.sources,
	}
	positions, problems := loader.Decode(l.file, text, cfg)
	if positions == nil {
		return nil, problems
	}
	cfg.TenantDefaults = Tenant{} // each tenant has them by now
	cfg.positions = positions
	cfg.fillIn(positions)
	cfg.normalize()
	l.note(cfg)
	if l.last != nil && l.last.loaded.catalogues == cfg.loaded.catalogues {
		cfg.loaded.bundle = l.last.loaded.bundle
	}
	checked := cfg.validate()
	cfg.loaded.bundle, cfg.loaded.refused = checked.bundle, checked.refused
	if problems = append(problems, checked.problems...); len(problems) > 0 {
		problems = append(problems, cfg.RefusedTexts()...) // to be corrected too
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

// keepTenants keeps the tenants of the previous configuration, and its auth, where both configurations have the same.
func (c *Config) keepTenants(other *Config) {
	reload.Keep(c.Tenants, other.Tenants, func(name string, t, before *Tenant) bool {
		return c.loaded.tenantFiles[name] == other.loaded.tenantFiles[name] && reflect.DeepEqual(t, before)
	})
	before := other.ServerAuth()
	if c.loaded.authFiles == other.loaded.authFiles && reflect.DeepEqual(before, c.ServerAuth()) {
		c.loaded.auth = before
	}
}

// note notes the files that the configuration names, and what is in them.
func (l *Loader) note(cfg *Config) {
	catalogues := yamlconf.NewSources()
	if dir := cfg.LocalesDir; dir != "" {
		entries, _ := catalogues.ReadDir(dir) // an error shows when they are loaded
		for _, e := range entries {
			_, _ = catalogues.ReadFile(filepath.Join(dir, e.Name(), "messages.gotext.json"))
		}
	}
	cfg.loaded.catalogues = catalogues.Sum()
	l.sources.Add(catalogues)
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
	cfg.loaded.all = l.sources.Sum()
}

// noteAll notes what is in files, and returns a hash of all.
func (l *Loader) noteAll(files []*string) [sha256.Size]byte {
	all := sha256.New()
	for _, file := range files {
		l.noteFile(*file)
		sum := l.sources.SumOf(*file)
		all.Write(sum[:])
	}
	return [sha256.Size]byte(all.Sum(nil))
}

// noteFile notes what is in a file. That of one which cannot be read is empty: the check of the value says so.
func (l *Loader) noteFile(name string) {
	if name != "" {
		_, _ = l.sources.ReadFile(name)
	}
}

// files are the values that name files which the server reads, apart from those of tenants.
func (c *Config) files() []*string {
	return slices.AppendSeq(append(c.TLS.files(), c.Admin.files()...), maps.Values(c.filesAtStart()))
}

// filesAtStart are those of files which the server reads only when it starts, by key.
func (c *Config) filesAtStart() map[string]*string {
	if c.TLS.ACME.CAFile == "" && c.Audit.Webhook.CAFile == "" {
		return nil
	}
	return map[string]*string{"ca_file": &c.CAFile}
}

// files are the values of a tenant that name files.
func (t *Tenant) files() []*string {
	return append(append(t.TLS.files(), t.Auth.files()...), &t.Webhook.CAFile, &t.Inspect.Hook.CAFile)
}

// KeepFiles notes that the server has read files as another configuration has them, and not again. It returns the
// keys of those with another content.
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

// Bundle loads the catalogues: the built-in ones and those of LocalesDir.
func (c *Config) Bundle() (*i18n.Bundle, error) {
	switch {
	case c.loaded.bundle != nil:
		return c.loaded.bundle, nil
	case c.LocalesDir == "":
		return i18n.Load()
	}
	return i18n.Load(os.DirFS(c.LocalesDir))
}
