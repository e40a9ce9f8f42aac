package config

import (
	"log/slog"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A Config is the configuration of a server. Make one with [Load], or with [Default] and Validate.
//
// The comments of its fields, and of the structs in it, are the meanings in docs/configuration.md. A tag
// `default:"..."` says what an absent value stands for, where [Default] does not.
type Config struct {
	// Address of the control connection, host:port.
	Listen string `yaml:"listen"`
	// Address of `/metrics`, `/healthz` and `/readyz`, host:port. With `""` there is none.
	MetricsListen string `yaml:"metrics_listen" empty:"no listener" default:"127.0.0.1:9121"`
	// Unix socket for `babelftp sessions`, `bans`, `debug` and others, open to the user of the server only. With `""`
	// there is none.
	AdminSocket string `yaml:"admin_socket" empty:"no socket" path:"true" default:"/run/babelftp/admin/admin.sock"`
	// OptionalSocket says that AdminSocket is the default: the server does without it where it cannot be opened.
	OptionalSocket bool
	// Language of a session until LANG, HOST or the login choose another one.
	DefaultLanguage language.Tag `yaml:"default_language"`
	// Folder of catalogues, `TAG/messages.gotext.json`, that add languages or replace single messages.
	LocalesDir string `yaml:"locales_dir" path:"true" default:"none"`

	// Encryption of control and data connections.
	TLS TLS `yaml:"tls"`
	// PEM file of authorities to trust in addition to those of the system: of webhooks, inspectors, directories and
	// others that the server calls, but not of S3. `SSL_CERT_FILE` and `SSL_CERT_DIR`
	// in the environment name others in place of those of the system.
	CAFile string `yaml:"ca_file" path:"true" default:"none"`
	// Data connections that clients open (PASV and EPSV).
	Passive Passive `yaml:"passive"`
	// Addresses of clients behind a load balancer or proxy.
	ProxyProtocol ProxyProtocol `yaml:"proxy_protocol"`
	// Several replicas behind one address.
	Cluster Cluster `yaml:"cluster"`
	// How S3 is reached.
	S3 S3 `yaml:"s3"`
	// The log, on standard error.
	Log Log `yaml:"log"`
	// The audit log: a line of JSON for each login, change and transfer.
	Audit Audit `yaml:"audit"`
	// Page and API for administrators over HTTP.
	Admin Admin `yaml:"admin"`
	// What clients may use. The limits of server, address, tenant and user all apply.
	Limits Limits `yaml:"limits"`

	// How long a session may be idle between two commands.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	// DataTimeout is how long a data connection may take to open, unless StallTimeout is shorter. It is no key.
	DataTimeout time.Duration
	// How long a transfer may move no byte. A data connection must open in this time too, and in 30 seconds.
	StallTimeout time.Duration `yaml:"stall_timeout"`
	// Longest wait of an upload without TLS for news that its client was killed, up to 1s. Longer helps clients on busy
	// machines.
	CommitDelay time.Duration `yaml:"commit_delay"`
	// How long running transfers may continue after SIGTERM.
	DrainTimeout time.Duration `yaml:"drain_timeout"`
	// MaxFailedLogins is after how many wrong passwords the server closes a session. It is no key: bans and rates of
	// logins count beyond the session.
	MaxFailedLogins int

	// Memory of all uploads. Downloads and listings read ahead with what uploads leave of it.
	Memory bytesize.Size `yaml:"memory"`
	// Size of the parts of a multipart upload, from 5 MiB to nine sixteenths of `memory`.
	PartSize bytesize.Size `yaml:"part_size"`
	// Age at which an interrupted upload is removed. With `0` none is removed or recorded.
	AbandonedUploads time.Duration `yaml:"abandoned_uploads"`

	// The tenants. At least one is required.
	Tenants map[string]*Tenant `yaml:"tenants" defaults:"TenantDefaults" folders:"TenantsDir"`
	// Folders with more tenants, such as mounted Secrets. Each file `NAME.yaml` has the keys of the tenant NAME.
	TenantsDir yamlconf.OneOrMore `yaml:"tenants_dir" path:"true" default:"none"`
	// Defaults of all tenants. Sections and maps are merged key by key; a list of the tenant replaces the one here.
	TenantDefaults Tenant `yaml:"tenant_defaults"`
	// Service that decides on logins in all tenants without an `auth` of their own: `hook` or `ldap`. It names the
	// tenant, by `tenant` in the answer of a hook, or by `attributes: {tenant: ou}` of `ldap`.
	Auth Auth `yaml:"auth"`

	positions yamlconf.Positions // where each value was given, until it is validated
	loaded    loaded             // by a Loader
}

// Log is what the server writes to standard error.
type Log struct {
	// Least important records to write.
	Level slog.Level `yaml:"level"`
	// Form of the records.
	Format LogFormat `yaml:"format"`
}

// What Default sets.
const (
	defaultListen = ":21"
	// defaultCommitDelay is longer than a killed client's kernel takes. It closes the data connection first, and the
	// control connection some 50 microseconds later. Where its machine is busy 20 milliseconds were seen with few tasks
	// for each processor.
	defaultCommitDelay  = 50 * time.Millisecond
	defaultIdleTimeout  = 5 * time.Minute // RFC 1123 4.1.3.2 asks for five minutes at least
	defaultDataTimeout  = 30 * time.Second
	defaultStallTimeout = 5 * time.Minute
	// Kubernetes kills a pod 30 seconds after SIGTERM by default. The server needs the rest to end the transfers that
	// still run.
	defaultDrainTimeout     = 25 * time.Second
	defaultMaxFailedLogins  = 5
	defaultMemory           = 256 * bytesize.MiB
	defaultPartSize         = 5 * bytesize.MiB
	defaultAbandonedUploads = 24 * time.Hour // a user can resume on the next day
)

// environmentPrefix begins the names of the variables that give values.
const environmentPrefix = "BABELFTP_"

// Problems is everything that is wrong with a configuration, one problem a line.
type Problems = yamlconf.Problems

// Default is a configuration without tenants.
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

// StorageOf is how a tenant's bucket is reached: what the tenant says over what the server says.
func (c *Config) StorageOf(t *Tenant) S3 { return t.S3.Inherit(c.S3) }

// StorageOfFolder is how the bucket of a tenant's folder is reached: what the folder says over what the tenant says.
func (c *Config) StorageOfFolder(t *Tenant, f *Folder) S3 { return f.S3.Inherit(c.StorageOf(t)) }

// storagesOf is how the bucket of a tenant and those of its folders are reached.
func (c *Config) storagesOf(t *Tenant) []S3 {
	storages := []S3{c.StorageOf(t)}
	for _, f := range t.Folders {
		storages = append(storages, c.StorageOfFolder(t, f))
	}
	return storages
}

// HasHosts reports whether clients can name a tenant by a host.
func (c *Config) HasHosts() bool {
	for _, t := range c.Tenants {
		if len(t.Hosts) > 0 {
			return true
		}
	}
	return false
}

// UsersCount is the number of users of all tenants.
func (c *Config) UsersCount() (n int) {
	for _, t := range c.Tenants {
		n += len(t.Users)
	}
	return n
}
