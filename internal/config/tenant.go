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

// A Tenant has a bucket, or a part of one, and the users who can access it.
type Tenant struct {
	// Virtual hosts of the tenant, which clients select by HOST (RFC 7151) or by the server name of TLS. If no tenant
	// has hosts, HOST accepts any name; otherwise it refuses unknown names with 504.
	Hosts []string `yaml:"hosts" default:"none"`
	// TLS settings that override the server's.
	TLS TenantTLS `yaml:"tls"`
	// Name of the S3 bucket.
	Bucket string `yaml:"bucket" default:"required"`
	// Prefix of all keys. A trailing slash is optional.
	Prefix string `yaml:"prefix" default:"none"`

	// Languages that FEAT lists and LANG accepts.
	Languages []language.Tag `yaml:"languages" default:"all"`
	// Language of replies, one of `languages`.
	DefaultLanguage language.Tag `yaml:"default_language" default:"the server's, or the first of languages"`
	// Text after HOST, by language. It is also shown after the login if there is no `welcome`, and by LANG. The
	// variables `{User}`, `{Tenant}`, `{LastLogin}` and `{Quota}` are replaced.
	Greeting map[language.Tag]string `yaml:"greeting" default:"none"`
	// Text after the login, by language, with the same variables as `greeting`.
	Welcome map[language.Tag]string `yaml:"welcome" default:"the greeting"`
	// Texts that replace single replies, by message and language.
	Messages map[i18n.ID]map[language.Tag]i18n.Text `yaml:"messages" default:"none"`

	// Encodings of file names in a directory and below it, by directory.
	DirectoryEncodings map[string]value.Encoding `yaml:"directory_encodings" default:"none"`

	// Adaptations for clients and devices that deviate from the standards.
	Compatibility Compatibility `yaml:"compatibility"`
	// Adaptations for clients in certain networks, by network. The most specific network applies; settings that it
	// does not have are inherited from the tenant.
	CompatibilityByNetwork map[value.Network]*Compatibility `yaml:"compatibility_by_network" default:"none"`

	// Maximum size of all files in `prefix`.
	Quota bytesize.Size `yaml:"quota" default:"no limit"`
	// Interrupted uploads: `keep` them so that the user can resume them, or `discard` them.
	Resume Resume `yaml:"resume" default:"keep; discard in directory buckets, on OpenStack Swift and with abandoned_uploads: 0"`
	// ResumeByDefault reports whether Resume is the default.
	ResumeByDefault bool
	// Maximum lifetime of presigned links, up to 168h.
	Presign time.Duration `yaml:"presign" default:"no links"`

	// Operations that users may perform. Permissions of a user can only restrict them. `password` allows `SITE PSWD`.
	Permissions []Permission `yaml:"permissions" default:"all except password"`
	// Permissions for paths that match a pattern, instead of `permissions`. Permissions of a user can only restrict
	// them.
	PathPermissions map[string][]Permission `yaml:"path_permissions" default:"none"`
	// Restrictions on the files that users may store.
	Files FileRules `yaml:"files"`
	// Virus scanner or hook that inspects the content of files before they are stored.
	Inspect Inspect `yaml:"inspect"`
	// Effect of an upload on an existing file: `allow` replaces it, `deny` refuses the upload, and `version` replaces
	// it only in a bucket with versioning.
	Overwrite Overwrite `yaml:"overwrite" default:"allow"`

	// Name of a read-only directory in the root of each user that shows earlier versions of files, for example
	// `.versions`. It requires versioning in all buckets of the tenant.
	VersionsDirectory string `yaml:"versions_directory" default:"none"`
	// Restoring of archived files when they are downloaded. Downloads are refused with 450 until S3 has restored the
	// file.
	Restore Restore `yaml:"restore"`
	// Time zone of dates in `versions_directory`, as a name in the IANA database.
	Timezone value.Zone `yaml:"timezone" default:"UTC"`

	// Directories of the tenant that show other buckets, or parts of buckets, by absolute path.
	Folders map[string]*Folder `yaml:"folders" default:"none"`

	// Storage of new objects.
	Objects Objects `yaml:"objects"`
	// S3 settings that override the server's.
	S3 S3 `yaml:"s3"`
	// Limits for the tenant and each of its users.
	Limits TenantLimits `yaml:"limits"`
	// PEM file with additional CA certificates to trust for `auth`, `webhook` and `inspect`, instead of the one of
	// the server. For `auth.ftp` it may contain the certificate of the old server itself.
	CAFile string `yaml:"ca_file" path:"true" default:"the server's"`
	// Webhook that receives events about files that users store, delete, rename or copy.
	Webhook Webhook `yaml:"webhook"`

	// YAML file with more `users`, or a folder with such files.
	UsersFile string `yaml:"users_file" path:"true" default:"none"`
	// Where commands, administrators and the server store users besides `users_file`: `state` is the shared state,
	// so that all replicas have the same users.
	UsersStore UsersStore `yaml:"users_store" default:"none"`
	// UsersUnknown reports whether the users in UsersStore could not be read yet. It is not a key.
	UsersUnknown bool
	// Replace password hashes in `users_file` and `users_store` by argon2id after a login, if they are of another kind
	// and the server may write the file. Set `false` if another program manages the file.
	RehashPasswords *bool `yaml:"rehash_passwords" default:"true"`
	// Users by name. At least one is required, unless `users_store` is set, or `auth` here or for the server.
	Users map[string]*User `yaml:"users" include:"UsersFile"`
	// Service that authenticates users who are not in the configuration: `hook`, `ldap` or `ftp`.
	Auth Auth `yaml:"auth"`

	// Namespace is the namespace of the custom resource, or empty for a tenant of a file. It is not a key.
	Namespace string

	withoutStored *Tenant // the tenant to which MergeUsers has added users
}

// checkVersionsDirectory validates the name at p.
func (t *Tenant) checkVersionsDirectory(v *validator, p yamlconf.Path) {
	dir := t.VersionsDirectory
	if dir == "" {
		return
	}
	if value.DirectoryProblem("/"+dir, "a name") != "" || value.PrefixProblem(dir) != "" || strings.Contains(dir, "/") {
		v.report(p, "%q is not a directory name: write one without a slash, like .versions", dir)
	}
	for name := range t.Folders {
		if first, _, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/"); first == dir {
			v.report(p, "%q conflicts with the folder %s: write another name", dir, name)
		}
	}
}

// Restore configures how archived objects (Glacier) are restored.
type Restore struct {
	// Days for which a restored file can be read. A download of an archived file starts the restore.
	Days int `yaml:"days" default:"no restoring"`
	// Speed of restoring, which affects the price.
	Tier RestoreTier `yaml:"tier" default:"standard"`
}

func (r *Restore) check(v *validator, p yamlconf.Path) {
	if r.Days < 0 || r.Days > math.MaxInt32 {
		v.report(p.Child("days"), "%d is not a valid number of days: write 1 or more", r.Days)
	}
	if r.Days == 0 && r.Tier != "" {
		v.report(p.Child("days"), "is missing: write for how many days a restored file can be read")
	}
}

// A Folder shows another bucket, or a part of one, as a directory of a tenant.
type Folder struct {
	// Name of the S3 bucket.
	Bucket string `yaml:"bucket" default:"the tenant's"`
	// Prefix of all keys.
	Prefix string `yaml:"prefix" default:"none"`
	// Operations that users may perform in the folder. Permissions of a user can only restrict them.
	Permissions []Permission `yaml:"permissions" default:"all"`
	// S3 settings that override the tenant's.
	S3 S3 `yaml:"s3"`
}

// Rehashes reports whether the server replaces weak password hashes in UsersFile and UsersStore.
func (t *Tenant) Rehashes() bool {
	return (t.UsersFile != "" || t.UsersStore != "") && (t.RehashPasswords == nil || *t.RehashPasswords)
}

// MayChangePassword reports whether a user of the tenant may change the password: the tenant or the user must have a
// list of permissions, and each of these lists must have [Password].
func (t *Tenant) MayChangePassword(u *User) bool {
	granted := false
	for _, permissions := range [][]Permission{t.Permissions, u.Permissions} {
		if permissions != nil && !slices.Contains(permissions, Password) {
			return false
		}
		granted = granted || permissions != nil
	}
	return granted
}

// OverwriteOf returns the overwrite mode for a user of the tenant.
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
		v.report(p.Child("resume"), "requires abandoned_uploads, which removes uploads that no client resumes")
	}
	t.Objects.check(v, p.Child("objects"))
	t.checkEncryption(v, p.Child("objects"))
	t.Limits.check(v, p.Child("limits"))
	t.S3.check(v, p.Child("s3"), p[1:])
	t.Auth.checkOfTenant(v, p.Child("auth"), t.UsersFile != "" || t.UsersStore != "")
	if t.UsersStore == StateStore && !v.cfg.State.IsSet() {
		v.report(p.Child("users_store"), "requires the section state of the server, with the bucket that all replicas share")
	}
	hasService := t.Auth.IsSet() || v.cfg.Auth.IsSet() || v.broken(p.Child("auth"), "hook", "ldap", "ftp")
	hasUsers := len(t.Users) > 0 || t.UsersStore != "" || t.Namespace != "" // a custom resource gets its users later
	if !hasUsers && !hasService && !v.broken(p, "users_store") {
		key := "users"
		if t.UsersFile != "" {
			key = "users_file"
		}
		v.report(p.Child(key), "is empty: add at least one user, so that a client can log in")
	}
	for name, u := range t.Users {
		t.checkUser(v, p, name, u, offered)
	}
}

// checkUser validates a user of the tenant at p, which offers these languages.
func (t *Tenant) checkUser(v *validator, p yamlconf.Path, name string, u *User, offered *i18n.Bundle) {
	u.check(v, p.Child("users").Child(name), name)
	t.checkUserHere(v, p, name, u, offered)
}

// checkUserHere validates what depends on the tenant.
func (t *Tenant) checkUserHere(v *validator, p yamlconf.Path, name string, u *User, offered *i18n.Bundle) {
	at := p.Child("users").Child(name)
	v.oneOf(at.Child("language"), u.Language, offered)
	if len(u.Certificates) > 0 && t.TLS.ClientCertificatesOf(&v.cfg.TLS).CAFile == "" {
		v.report(at.Child("certificates"), "requires tls.client_certificates.ca_file with the CA that issues them")
	}
	if u.MustChangePassword {
		t.checkMustChange(v, at.Child("must_change_password"), u)
	}
}

// checkMustChange reports a user who must change the password, but cannot.
func (t *Tenant) checkMustChange(v *validator, p yamlconf.Path, u *User) {
	switch {
	case u.PasswordHash.Empty() && !u.Disabled:
		v.report(p, "requires password_hash: a user without a password cannot change it")
	case !t.MayChangePassword(u):
		v.report(p, "requires the permission to change it: add password to permissions of the user or the tenant, and to "+
			"both if both are given")
	}
}

// maxPresign is the maximum lifetime that S3 allows:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
const maxPresign = 7 * 24 * time.Hour

// checkPresign validates the lifetime of links. Links that are signed with the credentials of a role expire with
// them.
func (t *Tenant) checkPresign(v *validator, p yamlconf.Path) {
	if t.Presign != 0 && (t.Presign < time.Second || t.Presign > maxPresign) {
		v.report(p,
			"%s is not between 1s and %.0fh, which S3 allows: correct it, or remove the key to disable links",
			t.Presign, maxPresign.Hours())
	}
	for _, s := range v.cfg.storagesOf(t) {
		if most := maxRoleDuration - RoleRenewBefore; s.AssumeRole.IsSet() && t.Presign > most {
			v.report(p, "%s is longer than the credentials of s3.assume_role are valid: write at most %s", t.Presign, most)
			return
		}
	}
}

// checkEncryption validates the encryption for all buckets of the tenant.
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

// checkEncodings validates the encodings of file names.
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

// checkFolders validates the folders of the tenant.
func (t *Tenant) checkFolders(v *validator, p yamlconf.Path) {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(t.Folders)) {
		at, f := p.Child(name), t.Folders[name]
		v.sameName(at, seen, name)
		if broken := value.DirectoryProblem(name, "bucket and prefix of the tenant"); broken != "" {
			v.report(at, "%s", broken)
		}
		switch {
		case f.Bucket == "" && f.S3.IsSet():
			v.report(at.Child("bucket"), "is missing: name the bucket at the S3 server of the folder")
		case f.Bucket == "" && f.Prefix == "":
			v.report(at, "is empty: set bucket, or prefix for a part of the tenant's bucket")
		}
		v.bucketAndPrefix(at, f.Bucket, f.Prefix)
		f.S3.check(v, at.Child("s3"), p[1:2])
		v.permissions(at, f.Permissions, nil)
		v.rejectPassword(at.Child("permissions"), f.Permissions)
	}
}
