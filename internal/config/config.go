package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/dataconn"
	"github.com/babelftp/babelftp/internal/pathname"
)

// A Config is the configuration of a server. Make one with [Load], or with [Default] and Validate.
type Config struct {
	Listen        string `yaml:"listen"`         // of the control connection, host:port
	MetricsListen string `yaml:"metrics_listen"` // host:port of /metrics, /healthz and /readyz; empty: none

	DefaultLanguage language.Tag `yaml:"default_language"`
	LocalesDir      string       `yaml:"locales_dir"` // catalogues that add to and override the built-in ones; empty: none
	UnknownHosts    UnknownHosts `yaml:"unknown_hosts"`

	TLS     TLS     `yaml:"tls"`
	Passive Passive `yaml:"passive"`
	S3      S3      `yaml:"s3"`
	Log     Log     `yaml:"log"`

	IdleTimeout     time.Duration `yaml:"idle_timeout"`      // between commands
	DataTimeout     time.Duration `yaml:"data_timeout"`      // to open a data connection
	StallTimeout    time.Duration `yaml:"stall_timeout"`     // of a transfer that moves no byte
	CommitDelay     time.Duration `yaml:"commit_delay"`      // how long at most a complete upload waits for news that its client died
	DrainTimeout    time.Duration `yaml:"drain_timeout"`     // how long running transfers may go on after SIGTERM
	MaxFailedLogins int           `yaml:"max_failed_logins"` // in a session

	Memory              Size `yaml:"memory"`               // what all transfers together may hold in memory
	PartSize            Size `yaml:"part_size"`            // of a multipart upload
	UploadConcurrency   int  `yaml:"upload_concurrency"`   // parts of one upload under way at once
	DownloadConcurrency int  `yaml:"download_concurrency"` // ranges of one download under way at once, where one is too slow

	AbandonedUploads time.Duration `yaml:"abandoned_uploads"` // how long nobody works on an upload before it is removed; 0: for ever

	Tenants map[string]*Tenant `yaml:"tenants"`

	positions yamlconf.Positions // where each value was given
}

// TLS is how connections are encrypted. Without a certificate AUTH TLS is refused.
type TLS struct {
	ImplicitListen string     `yaml:"implicit_listen"` // host:port where TLS begins at once; empty: none
	CertFile       string     `yaml:"cert_file"`       // PEM, the server's certificate first
	KeyFile        string     `yaml:"key_file"`        // PEM
	Required       bool       `yaml:"required"`        // refuse logins and transfers that are not encrypted
	MinVersion     TLSVersion `yaml:"min_version"`
}

// Passive is where the data connections of PASV and EPSV arrive.
type Passive struct {
	Ports         dataconn.PortRange `yaml:"ports"`          // the zero value: those that anybody may use (RFC 6335 6)
	PublicAddress netip.Addr         `yaml:"public_address"` // what PASV shows; the zero value: the address that the client reached
}

// S3 is how a bucket is reached. In a tenant the zero value of a field means the server's.
type S3 struct {
	Endpoint        string      `yaml:"endpoint"`        // URL; empty: that of AWS
	PublicEndpoint  string      `yaml:"public_endpoint"` // URL by which those reach it who download by links; empty: Endpoint
	Region          string      `yaml:"region"`
	PathStyle       *bool       `yaml:"path_style"` // put the bucket into the path rather than the host name
	Checksums       ChecksumUse `yaml:"checksums"`
	Profile         Profile     `yaml:"profile"` // what the server can do; empty: AutoProfile
	AccessKeyID     string      `yaml:"access_key_id"`
	SecretAccessKey Secret      `yaml:"secret_access_key"` // without the pair: what the AWS SDK finds (environment, profile, IRSA, instance role)
}

// Log is what is written to standard error.
type Log struct {
	Level  slog.Level `yaml:"level"`
	Format LogFormat  `yaml:"format"`
}

// A Tenant owns a bucket, or a part of one, and the users who see it.
type Tenant struct {
	Hosts  []string  `yaml:"hosts"` // virtual hosts, in lower case and ASCII
	TLS    TenantTLS `yaml:"tls"`
	Bucket string    `yaml:"bucket"`
	Prefix string    `yaml:"prefix"` // of all keys; empty or ending with a slash

	Languages       []language.Tag                      `yaml:"languages"`        // those that LANG and FEAT offer; nil: all
	DefaultLanguage language.Tag                        `yaml:"default_language"` // the zero value: the server's if it is offered, else the first
	Greeting        map[language.Tag]string             `yaml:"greeting"`         // with variables, like Welcome: {User}, {Tenant}, {LastLogin}, {Quota}
	Welcome         map[language.Tag]string             `yaml:"welcome"`          // after login; nil: Greeting
	GreetAfterLang  bool                                `yaml:"greet_after_lang"` // after LANG too
	Messages        map[i18n.ID]map[language.Tag]string `yaml:"messages"`         // in the place of those of the catalogues

	PathnameEncoding   Encoding               `yaml:"pathname_encoding"`
	DirectoryEncodings map[string]Encoding    `yaml:"directory_encodings"` // of names in and below directories of the tenant
	Normalization      pathname.Normalization `yaml:"normalization"`       // empty: see [Tenant.NormalizationOf]

	Quota   Size          `yaml:"quota"`   // what may be stored below Prefix; 0: no bound
	Resume  Resume        `yaml:"resume"`  // what becomes of uploads that break
	Presign time.Duration `yaml:"presign"` // the longest life of a link to a file; 0: no links

	ListingCache time.Duration `yaml:"listing_cache"` // how long a session remembers the files that it has listed; 0: not at all

	Permissions     []Permission            `yaml:"permissions"`      // the most that any user has; nil: all
	PathPermissions map[string][]Permission `yaml:"path_permissions"` // by patterns of the tenant's pathnames, the most that any user has there
	Overwrite       Overwrite               `yaml:"overwrite"`        // empty: AllowOverwrite

	Folders map[string]*Folder `yaml:"folders"` // by directories of the tenant, absolute

	Objects Objects `yaml:"objects"`

	S3    S3               `yaml:"s3"`
	Users map[string]*User `yaml:"users"`
}

// A Folder shows another bucket, or another part of one, as a directory of a tenant.
type Folder struct {
	Bucket      string       `yaml:"bucket"`      // empty: the tenant's
	Prefix      string       `yaml:"prefix"`      // of all keys; empty or ending with a slash
	Permissions []Permission `yaml:"permissions"` // the most that any user has in it; nil: all
	S3          S3           `yaml:"s3"`          // over the tenant's
}

// A Certificate is the files of a certificate and its key, both PEM. The zero value is none.
type Certificate struct {
	CertFile string `yaml:"cert_file"` // the server's certificate first
	KeyFile  string `yaml:"key_file"`
}

// TenantTLS is how the connections of a tenant are encrypted where that is not as the server does it.
type TenantTLS struct {
	CertFile string `yaml:"cert_file"` // PEM, shown to clients that name one of the hosts to TLS; empty: the server's
	KeyFile  string `yaml:"key_file"`  // PEM
	// StrictDataEOF refuses an upload whose data connection ends without close_notify; nil: it does.
	StrictDataEOF *bool `yaml:"strict_data_eof"`
}

// A User of a tenant.
type User struct {
	PasswordHash    Secret                  `yaml:"password_hash"`    // argon2id in the PHC string format
	Home            string                  `yaml:"home"`             // the directory a login starts in, as the user sees it; empty: "/"
	Root            string                  `yaml:"root"`             // the tenant's directory that the user sees as "/"; empty: "/"
	Permissions     []Permission            `yaml:"permissions"`      // nil: all
	PathPermissions map[string][]Permission `yaml:"path_permissions"` // by patterns of pathnames as the user sees them, instead of Permissions
	Overwrite       Overwrite               `yaml:"overwrite"`        // empty: the tenant's
	Quota           Size                    `yaml:"quota"`            // what may be stored below Root, beside the tenant's; 0: no bound
}

// What Default sets.
const (
	defaultListen       = ":21"
	defaultIdleTimeout  = 5 * time.Minute // RFC 1123 4.1.3.2 asks for five minutes at least
	defaultDataTimeout  = 30 * time.Second
	defaultStallTimeout = 5 * time.Minute
	// A killed client's kernel closes the data connection first and the control connection some 50 microseconds later. Where its machine
	// is busy 20 milliseconds were seen with few tasks for each processor; where that machine is the server's own, the wait grows with them.
	defaultCommitDelay = 50 * time.Millisecond
	// Kubernetes kills a pod 30 seconds after SIGTERM unless told otherwise; the rest is for cutting what still runs.
	defaultDrainTimeout        = 25 * time.Second
	defaultMaxFailedLogins     = 5
	defaultMemory              = 256 * MiB
	defaultPartSize            = 5 * MiB
	defaultUploadConcurrency   = 16
	defaultDownloadConcurrency = 16             // where each carries 25 MiB/s, as from a distant S3, they are as fast as a server's disk
	defaultAbandonedUploads    = 24 * time.Hour // who goes home in the evening can go on in the morning
)

// environmentPrefix begins the names of the variables that give values.
const environmentPrefix = "BABELFTP_"

// Problems is everything that is wrong with a configuration, one problem a line.
type Problems = yamlconf.Problems

// Default is a configuration without tenants.
func Default() *Config {
	return &Config{
		Listen:              defaultListen,
		DefaultLanguage:     language.English,
		Log:                 Log{Level: slog.LevelInfo, Format: LogText},
		IdleTimeout:         defaultIdleTimeout,
		DataTimeout:         defaultDataTimeout,
		StallTimeout:        defaultStallTimeout,
		CommitDelay:         defaultCommitDelay,
		DrainTimeout:        defaultDrainTimeout,
		MaxFailedLogins:     defaultMaxFailedLogins,
		Memory:              defaultMemory,
		PartSize:            defaultPartSize,
		UploadConcurrency:   defaultUploadConcurrency,
		DownloadConcurrency: defaultDownloadConcurrency,
		AbandonedUploads:    defaultAbandonedUploads,
	}
}

// Load reads the configuration in file and in the environment, which is given as os.Environ gives it, and validates it. What is
// wrong with the configuration is returned as [Problems].
func Load(file string, environ []string) (*Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration %s: %w", file, yamlconf.WithoutPath(err))
	}
	return parse(file, text, environ)
}

// parse reads the configuration in text, the content of file.
func parse(file string, text []byte, environ []string) (*Config, error) {
	cfg := Default()
	loader := yamlconf.Loader{Environ: environ, Prefix: environmentPrefix, Advice: map[string]string{
		"password": "passwords are not kept in plain text: write password_hash with what `babelftp hash-password` prints",
	}}
	positions, problems := loader.Decode(file, text, cfg)
	if positions == nil {
		return nil, problems
	}
	cfg.positions = positions
	cfg.normalize(filepath.Dir(file))

	problems = append(problems, cfg.validate()...)
	if len(problems) > 0 {
		problems.Sort()
		return nil, problems
	}
	return cfg, nil
}

// Bundle loads the catalogues: the built-in ones and those of LocalesDir.
func (c *Config) Bundle() (*i18n.Bundle, error) {
	if c.LocalesDir == "" {
		return i18n.Load()
	}
	return i18n.Load(os.DirFS(c.LocalesDir))
}

// StorageOf is how a tenant's bucket is reached: what the tenant says over what the server says.
func (c *Config) StorageOf(t *Tenant) S3 { return t.S3.over(c.S3) }

// StorageOfFolder is how the bucket of a tenant's folder is reached: what the folder says over what the tenant says.
func (c *Config) StorageOfFolder(t *Tenant, f *Folder) S3 { return f.S3.over(c.StorageOf(t)) }

// over is what s says, and where it says nothing what another says.
func (s S3) over(other S3) S3 {
	s.Endpoint = cmp.Or(s.Endpoint, other.Endpoint)
	s.PublicEndpoint = cmp.Or(s.PublicEndpoint, other.PublicEndpoint)
	s.Region = cmp.Or(s.Region, other.Region)
	s.Checksums = cmp.Or(s.Checksums, other.Checksums)
	s.Profile = cmp.Or(s.Profile, other.Profile)
	if s.PathStyle == nil {
		s.PathStyle = other.PathStyle
	}
	if s.AccessKeyID == "" { // the two keys belong together
		s.AccessKeyID, s.SecretAccessKey = other.AccessKeyID, other.SecretAccessKey
	}
	return s
}

// NormalizationOf is the Unicode form of the tenant's names: NFC unless the tenant says otherwise, or has names that are no text.
func (t *Tenant) NormalizationOf() pathname.Normalization {
	switch {
	case t.Normalization != "":
		return t.Normalization
	case t.PathnameEncoding.Raw():
		return pathname.None
	}
	return pathname.NFC
}

// OverwriteOf is what becomes of a file that a user of the tenant stores anew.
func (t *Tenant) OverwriteOf(u *User) Overwrite {
	return cmp.Or(u.Overwrite, t.Overwrite, AllowOverwrite)
}

// UsersCount is the number of users of all tenants.
func (c *Config) UsersCount() int {
	n := 0
	for _, t := range c.Tenants {
		n += len(t.Users)
	}
	return n
}
