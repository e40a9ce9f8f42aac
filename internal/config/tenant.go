package config

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A Tenant owns a bucket, or a part of one, and the users who see it.
type Tenant struct {
	// Virtual hosts: names for HOST (RFC 7151), and those that a client gives to TLS. Where no tenant has any, HOST
	// takes each name; else it answers 504 to other names.
	Hosts []string `yaml:"hosts" default:"none"`
	// TLS of the tenant's clients, where it differs from the server's.
	TLS TenantTLS `yaml:"tls"`
	// Name of the S3 bucket.
	Bucket string `yaml:"bucket" default:"required"`
	// Beginning of all keys. A slash at its end may be left out.
	Prefix string `yaml:"prefix" default:"none"`

	// Languages that LANG and FEAT offer.
	Languages []language.Tag `yaml:"languages" default:"all"`
	// Language of the tenant's sessions, one of `languages`.
	DefaultLanguage language.Tag `yaml:"default_language" default:"the server's, or the first of languages"`
	// Text by language, shown after HOST, and after the login without a `welcome`. LANG shows it again. It may hold
	// `{User}`, `{Tenant}`, `{LastLogin}`, `{Quota}`.
	Greeting map[language.Tag]string `yaml:"greeting" default:"none"`
	// Text by language, shown after the login, with the variables of `greeting`.
	Welcome map[language.Tag]string `yaml:"welcome" default:"the greeting"`
	// Texts of single replies, by message and language, in place of those of the catalogues.
	Messages map[i18n.ID]map[language.Tag]i18n.Text `yaml:"messages" default:"none"`

	// Encodings of the names in directories of the tenant and below them.
	DirectoryEncodings map[string]value.Encoding `yaml:"directory_encodings" default:"none"`

	// Clients and devices that differ from the standards.
	Compatibility Compatibility `yaml:"compatibility"`
	// The same for clients of some networks, by network. The smallest one counts; the tenant says what it leaves out.
	CompatibilityByNetwork map[value.Network]*Compatibility `yaml:"compatibility_by_network" default:"none"`

	// Bytes that may be stored below `prefix`.
	Quota bytesize.Size `yaml:"quota" default:"no limit"`
	// Interrupted uploads: `keep` them for the user to resume, or `discard` them.
	Resume Resume `yaml:"resume" default:"keep, or discard in directory buckets, on OpenStack Swift and with abandoned_uploads: 0"`
	// ResumeByDefault says that Resume is the default.
	ResumeByDefault bool
	// Longest life of a link to a file, up to 168h.
	Presign time.Duration `yaml:"presign" default:"no links"`

	// Most that any user of the tenant may do.
	Permissions []Permission `yaml:"permissions" default:"all"`
	// Most that any user may do with some pathnames of the tenant, by pattern.
	PathPermissions map[string][]Permission `yaml:"path_permissions" default:"none"`
	// Which files users may store.
	Files FileRules `yaml:"files"`
	// Inspector that judges files by their content before they are stored: a virus scanner, or a hook.
	Inspect Inspect `yaml:"inspect"`
	// What happens to a file when another one of its name is stored. `version` needs a bucket with versioning.
	Overwrite Overwrite `yaml:"overwrite" default:"allow"`

	// Name of a directory in the root of each user that shows the files as they were, `.versions` for example. No user
	// can change what is in it. Each bucket of the tenant must keep versions.
	VersionsDirectory string `yaml:"versions_directory" default:"none"`
	// Restores files that S3 has archived, when a user downloads them. The user gets 450 until they can be read.
	Restore Restore `yaml:"restore"`
	// Time zone of the dates that users write and read in `versions_directory`, by its name in the IANA database.
	Timezone value.Zone `yaml:"timezone" default:"UTC"`

	// Other buckets, or parts of buckets, as directories of the tenant, by absolute pathname.
	Folders map[string]*Folder `yaml:"folders" default:"none"`

	// How new objects are stored.
	Objects Objects `yaml:"objects"`
	// Where the tenant differs from the server's `s3`.
	S3 S3 `yaml:"s3"`
	// What the tenant and each of its users may use.
	Limits TenantLimits `yaml:"limits"`
	// PEM file of authorities to trust in addition to those of the system, in place of the server's: of `auth`,
	// `webhook` and `inspect`. For `auth.ftp` it may hold the certificate of the old server itself.
	CAFile string `yaml:"ca_file" path:"true" default:"the server's"`
	// Webhook that gets events about files that users store, delete, rename or copy.
	Webhook Webhook `yaml:"webhook"`

	// YAML file with more `users`, or a folder of such files.
	UsersFile string `yaml:"users_file" path:"true" default:"none"`
	// The users. At least one is required, unless `auth` has a service.
	Users map[string]*User `yaml:"users" include:"UsersFile"`
	// Service that decides on logins of users that the configuration does not have: `hook`, `ldap` or `ftp`.
	Auth Auth `yaml:"auth"`
}

// checkVersionsDirectory checks the name that p leads to.
func (t *Tenant) checkVersionsDirectory(v *validator, p yamlconf.Path) {
	dir := t.VersionsDirectory
	if dir == "" {
		return
	}
	if value.DirectoryProblem("/"+dir, "a name") != "" || value.PrefixProblem(dir) != "" || strings.Contains(dir, "/") {
		v.report(p, "%q is not a name: write one without a slash, like .versions", dir)
	}
	for name := range t.Folders {
		if first, _, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/"); first == dir {
			v.report(p, "%q leads to the folder %s: write another name", dir, name)
		}
	}
}

// Restore says how archived objects (Glacier) are restored.
type Restore struct {
	// Days for which an archived file can be read after a download has had S3 restore it.
	Days int `yaml:"days" default:"no file is restored"`
	// How fast S3 restores. Prices differ.
	Tier RestoreTier `yaml:"tier" default:"standard"`
}

func (r *Restore) check(v *validator, p yamlconf.Path) {
	if r.Days < 0 || r.Days > math.MaxInt32 {
		v.report(p.Child("days"), "%d is no number of days that S3 takes: write 1 or more", r.Days)
	}
	if r.Days == 0 && r.Tier != "" {
		v.report(p.Child("days"), "is missing: write for how many days a restored file can be read")
	}
}

// A Folder shows another bucket, or another part of one, as a directory of a tenant.
type Folder struct {
	// Name of the S3 bucket.
	Bucket string `yaml:"bucket" default:"the tenant's"`
	// Beginning of all keys.
	Prefix string `yaml:"prefix" default:"none"`
	// Most that any user may do in the folder.
	Permissions []Permission `yaml:"permissions" default:"all"`
	// Where the folder differs from the tenant's `s3`.
	S3 S3 `yaml:"s3"`
}

// OverwriteOf is what becomes of a file that a user of the tenant stores anew.
func (t *Tenant) OverwriteOf(u *User) Overwrite {
	return cmp.Or(u.Overwrite, t.Overwrite, AllowOverwrite)
}

func (t *Tenant) check(v *validator, p yamlconf.Path) {
	if t.Bucket == "" {
		v.report(p.Child("bucket"), "is missing: name the tenant's S3 bucket")
	}
	v.bucketAndPrefix(p, t.Bucket, t.Prefix)
	t.TLS.check(v, p.Child("tls"), t.Hosts)
	offered := t.checkLanguages(v, p)
	v.texts(p.Child("greeting"), t.Greeting)
	v.texts(p.Child("welcome"), t.Welcome)
	t.checkMessages(v, p.Child("messages"))
	t.checkEncodings(v, p)
	t.checkPresign(v, p.Child("presign"))
	v.authorities(p, t.CAFile)
	t.Webhook.check(v, p.Child("webhook"))
	v.permissions(p, t.Permissions, t.PathPermissions)
	t.Files.check(v, p.Child("files"))
	t.Inspect.check(v, p.Child("inspect"), t)
	t.checkFolders(v, p.Child("folders"))
	t.checkVersionsDirectory(v, p.Child("versions_directory"))
	t.Restore.check(v, p.Child("restore"))
	if t.Resume == KeepInterrupted && v.cfg.AbandonedUploads == 0 {
		v.report(p.Child("resume"), "needs abandoned_uploads: an upload that no client resumes would stay permanently")
	}
	t.Objects.check(v, p.Child("objects"))
	t.checkEncryption(v, p.Child("objects"))
	t.Limits.check(v, p.Child("limits"))
	t.S3.check(v, p.Child("s3"), p[1:])
	t.Auth.checkOfTenant(v, p.Child("auth"), t.UsersFile)
	asked := t.Auth.Given() || v.cfg.Auth.Given() || v.broken(p.Child("auth"), "hook", "ldap", "ftp")
	if len(t.Users) == 0 && !asked {
		key := "users"
		if t.UsersFile != "" {
			key = "users_file"
		}
		v.report(p.Child(key), "there are none: write one at least, so that a client can log in")
	}
	for name, u := range t.Users {
		at := p.Child("users").Child(name)
		u.check(v, at, name)
		v.oneOf(at.Child("language"), u.Language, offered)
		if len(u.Certificates) > 0 && t.TLS.ClientCertificatesOf(&v.cfg.TLS).CAFile == "" {
			v.report(at.Child("certificates"),
				"needs authorities that issue them: write tls.client_certificates.ca_file")
		}
	}
}

// maxPresign is how long S3 lets a link be good:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
const maxPresign = 7 * 24 * time.Hour

// checkPresign checks the life of links. One that is signed with the credentials of a role ends with them.
func (t *Tenant) checkPresign(v *validator, p yamlconf.Path) {
	if t.Presign != 0 && (t.Presign < time.Second || t.Presign > maxPresign) {
		v.report(p,
			"%s is not between 1s and %.0fh, which S3 allows: write another, or remove the key for no links",
			t.Presign, maxPresign.Hours())
	}
	for _, s := range v.cfg.storagesOf(t) {
		if most := maxRoleDuration - RoleRenewBefore; s.AssumeRole.Given() && t.Presign > most {
			v.report(p, "%s is longer than the credentials of s3.assume_role are good: write at most %s", t.Presign, most)
			return
		}
	}
}

// checkEncryption checks who has the key, where that is known.
func (t *Tenant) checkEncryption(v *validator, p yamlconf.Path) {
	if v.cfg.positions.Broken(p.Child("encryption")) {
		return
	}
	var endpoints []string
	for _, s := range v.cfg.storagesOf(t) {
		endpoints = append(endpoints, s.Endpoint)
	}
	t.Objects.checkEncryption(v, p, endpoints, t.Presign != 0)
}

// checkEncodings checks how the names of a tenant are written.
func (t *Tenant) checkEncodings(v *validator, p yamlconf.Path) {
	t.Compatibility.check(v, p.Child("compatibility"))
	for network, c := range t.CompatibilityByNetwork {
		c.check(v, p.Child("compatibility_by_network").Child(network.String()))
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(t.DirectoryEncodings)) {
		dir := p.Child("directory_encodings").Child(name)
		v.sameName(dir, seen, name)
		if broken := value.DirectoryProblem(name, "compatibility.charset"); broken != "" {
			v.report(dir, "%s", broken)
		}
	}
}

// checkFolders checks the folders of a tenant.
func (t *Tenant) checkFolders(v *validator, p yamlconf.Path) {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(t.Folders)) {
		at, f := p.Child(name), t.Folders[name]
		v.sameName(at, seen, name)
		if broken := value.DirectoryProblem(name, "bucket and prefix of the tenant"); broken != "" {
			v.report(at, "%s", broken)
		}
		switch {
		case f.Bucket == "" && f.S3.Given():
			v.report(at.Child("bucket"), "is missing: name the bucket at the S3 server of the folder")
		case f.Bucket == "" && f.Prefix == "":
			v.report(at, "says nothing: name a bucket, or a prefix in the bucket of the tenant")
		}
		v.bucketAndPrefix(at, f.Bucket, f.Prefix)
		f.S3.check(v, at.Child("s3"), p[1:2])
		v.permissions(at, f.Permissions, nil)
	}
}
