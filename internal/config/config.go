package config

import (
	"log/slog"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A Config is the configuration of a server. Use [Load] to read one, or [Default] and [Config.Validate].
//
// The reference in docs/configuration.md and the JSON Schema are generated from the comments of the fields with a
// yaml tag. A tag `default:"..."` documents the default of a field that is not set by [Default].
type Config struct {
	// Address of the control connection, host:port.
	Listen string `yaml:"listen"`
	// Address of `/metrics`, `/healthz` and `/readyz`, host:port. `""` disables it.
	MetricsListen string `yaml:"metrics_listen" empty:"no listener" default:"127.0.0.1:9121"`
	// Unix socket for commands such as `babelftp sessions`, `bans` and `debug`. Only the user of the server can
	// access it. `""` disables it.
	AdminSocket string `yaml:"admin_socket" empty:"no socket" path:"true" default:"/run/babelftp/admin/admin.sock"`
	// OptionalSocket reports whether AdminSocket is the default, so that the server starts even if it cannot be
	// opened.
	OptionalSocket bool
	// TenantsUnknown reports whether there may be more tenants, because custom resources could not be read yet. It is
	// not a key.
	TenantsUnknown bool
	// Language of replies until LANG, HOST or the login selects another one.
	DefaultLanguage language.Tag `yaml:"default_language"`
	// Folder with message catalogs, `TAG/messages.gotext.json`, that add languages or override single messages.
	LocalesDir string `yaml:"locales_dir" path:"true" default:"none"`

	// TLS for control and data connections.
	TLS TLS `yaml:"tls"`
	// PEM file with additional CA certificates to trust for webhooks, inspectors, directories, `admin.oidc` and other
	// services that the server calls, but not for S3. To replace the CA certificates of the system, set
	// `SSL_CERT_FILE` or `SSL_CERT_DIR` in the environment.
	CAFile string `yaml:"ca_file" path:"true" default:"none"`
	// Passive data connections (PASV and EPSV).
	Passive Passive `yaml:"passive"`
	// Client addresses behind a load balancer or proxy.
	ProxyProtocol ProxyProtocol `yaml:"proxy_protocol"`
	// Several replicas behind one address.
	Cluster Cluster `yaml:"cluster"`
	// Connection to S3.
	S3 S3 `yaml:"s3"`
	// Bans, last logins, certificates and TLS sessions that replicas share.
	State State `yaml:"state"`
	// The log, which is written to standard error.
	Log Log `yaml:"log"`
	// Audit log: a line of JSON for each login, change and transfer.
	Audit Audit `yaml:"audit"`
	// HTTP page and API for administrators.
	Admin Admin `yaml:"admin"`
	// Tenants and users that are custom resources of Kubernetes. Requires `babelftp-kubernetes`.
	Kubernetes Kubernetes `yaml:"kubernetes"`
	// Limits for clients. The limits of the server, the address, the tenant and the user all apply.
	Limits Limits `yaml:"limits"`

	// Time after which a session without a command is closed.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// DataTimeout limits the wait for a data connection, unless StallTimeout is shorter. It is not a key.
	DataTimeout time.Duration
	// Time after which a transfer that moves no data is aborted. It also limits the wait for a data connection, which
	// is at most 30 seconds.
	StallTimeout time.Duration `yaml:"stall_timeout"`
	// Maximum time that the end of an upload without TLS is delayed to detect that the client was killed, up to 1s.
	// Increase it if clients run on busy machines.
	CommitDelay time.Duration `yaml:"commit_delay"`
	// How long running transfers may continue after SIGTERM.
	DrainTimeout time.Duration `yaml:"drain_timeout"`
	// MaxFailedLogins is the number of wrong passwords after which a session is closed. It is not a key, because bans
	// and login rates limit guessing across sessions.
	MaxFailedLogins int

	// Memory for all uploads. Downloads and listings use what is left of it to read ahead.
	Memory bytesize.Size `yaml:"memory"`
	// Part size of multipart uploads, from 5 MiB to nine sixteenths of `memory`.
	PartSize bytesize.Size `yaml:"part_size"`
	// Age after which interrupted uploads are removed. `0` disables both removing and resuming them.
	AbandonedUploads time.Duration `yaml:"abandoned_uploads"`

	// Tenants by name. At least one is required.
	Tenants map[string]*Tenant `yaml:"tenants" defaults:"TenantDefaults" folders:"TenantsDir"`
	// Folders with further tenants, for example mounted Secrets. A file `NAME.yaml` has the keys of the tenant NAME.
	TenantsDir yamlconf.OneOrMore `yaml:"tenants_dir" path:"true" default:"none"`
	// Default settings for all tenants. Sections and maps are merged key by key; lists of a tenant replace the lists
	// here.
	TenantDefaults Tenant `yaml:"tenant_defaults"`
	// Service that authenticates users for all tenants without their own `auth`: `hook` or `ldap`. It must name the
	// tenant of the user, with `tenant` in the response of the hook, or with an attribute such as `attributes:
	// {tenant: ou}` of `ldap`.
	Auth Auth `yaml:"auth"`

	positions yamlconf.Positions // where each value is set; nil after validation
	loaded    loaded             // set by a Loader
}

// Log configures the log on standard error.
type Log struct {
	// Minimum level of log records.
	Level slog.Level `yaml:"level"`
	// Format of log records.
	Format LogFormat `yaml:"format"`
}

// Values set by Default.
const (
	defaultListen = ":21"
	// defaultCommitDelay is the time in which a killed client is detected. Its kernel closes the data connection
	// first and the control connection about 50 microseconds later; up to 20 milliseconds were measured on a busy
	// machine.
	defaultCommitDelay  = 50 * time.Millisecond
	defaultIdleTimeout  = 5 * time.Minute // RFC 1123, section 4.1.3.2, requires at least five minutes
	defaultDataTimeout  = 30 * time.Second
	defaultStallTimeout = 5 * time.Minute
	// By default, Kubernetes kills a pod 30 seconds after SIGTERM. The rest is needed to abort transfers that are
	// still running.
	defaultDrainTimeout     = 25 * time.Second
	defaultMaxFailedLogins  = 5
	defaultMemory           = 256 * bytesize.MiB
	defaultPartSize         = 5 * bytesize.MiB
	defaultAbandonedUploads = 24 * time.Hour // so that a user can resume the next day
)

// environmentPrefix is the prefix of environment variables that set values.
const environmentPrefix = "BABELFTP_"

// Problems is a list of everything that is wrong with a configuration. Its text has one line for each problem.
type Problems = yamlconf.Problems

// Default returns a configuration with default values and without tenants.
func Default() *Config {
	return &Config{
		Listen:           defaultListen,
		DefaultLanguage:  language.English,
		Log:              Log{Level: slog.LevelInfo, Format: LogText},
		IdleTimeout:      defaultIdleTimeout,
		CommitDelay:      defaultCommitDelay,
		DataTimeout:      defaultDataTimeout,
		StallTimeout:     defaultStallTimeout,
		DrainTimeout:     defaultDrainTimeout,
		MaxFailedLogins:  defaultMaxFailedLogins,
		Limits:           DefaultLimits(),
		Memory:           defaultMemory,
		PartSize:         defaultPartSize,
		AbandonedUploads: defaultAbandonedUploads,
	}
}

// StorageOf returns the S3 settings for the bucket of a tenant. Settings of the tenant take precedence over the
// server's.
func (c *Config) StorageOf(t *Tenant) S3 { return t.S3.Inherit(c.S3) }

// StorageOfFolder returns the S3 settings for a folder. Settings of the folder take precedence over the tenant's.
func (c *Config) StorageOfFolder(t *Tenant, f *Folder) S3 { return f.S3.Inherit(c.StorageOf(t)) }

// storagesOf returns the S3 settings for the buckets of a tenant and its folders.
func (c *Config) storagesOf(t *Tenant) []S3 {
	storages := []S3{c.StorageOf(t)}
	for _, f := range t.Folders {
		storages = append(storages, c.StorageOfFolder(t, f))
	}
	return storages
}

// HasHosts reports whether any tenant of the files has a host. Hosts of custom resources do not count, because they
// must not change what HOST means for other tenants.
func (c *Config) HasHosts() bool {
	for _, t := range c.Tenants {
		if len(t.Hosts) > 0 && t.Namespace == "" {
			return true
		}
	}
	return false
}

// UsersCount returns the number of users of all tenants.
func (c *Config) UsersCount() (n int) {
	for _, t := range c.Tenants {
		n += len(t.Users)
	}
	return n
}
