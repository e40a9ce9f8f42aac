package config

import (
	"cmp"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/i18n/gotext"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/names/pathname"
)

// A Tenant owns a bucket, or a part of one, and the users who see it.
type Tenant struct {
	// Virtual hosts: names for HOST (RFC 7151), and those that a client gives to TLS.
	Hosts []string  `yaml:"hosts" default:"none"`
	TLS   TenantTLS `yaml:"tls"`
	// Name of the S3 bucket.
	Bucket string `yaml:"bucket" default:"required"`
	// Beginning of all keys. A slash at its end may be left out.
	Prefix string `yaml:"prefix" default:"none"`

	// Languages that LANG and FEAT offer.
	Languages []language.Tag `yaml:"languages" default:"all"`
	// Language of the tenant's sessions, one of `languages`.
	DefaultLanguage language.Tag `yaml:"default_language" default:"the server's, or the first of languages"`
	// Text by language, shown after HOST, and after the login without a `welcome`. It may hold `{User}`, `{Tenant}`,
	// `{LastLogin}` and `{Quota}`.
	Greeting map[language.Tag]string `yaml:"greeting" default:"none"`
	// Text by language, shown after the login, with the variables of `greeting`.
	Welcome map[language.Tag]string `yaml:"welcome" default:"the greeting"`
	// Answer LANG with the welcome in the new language too (RFC 2640 4.1).
	GreetAfterLang bool `yaml:"greet_after_lang"`
	// Texts of single replies, by message and language, in place of those of the catalogues. A text may have plural
	// forms. A wrong one is refused alone.
	Messages map[i18n.ID]map[language.Tag]gotext.Text `yaml:"messages" default:"none"`

	// How clients without UTF-8 write pathnames: `utf-8`, `raw`, or the label of a charset.
	PathnameEncoding value.Encoding `yaml:"pathname_encoding" default:"utf-8"`
	// Encodings of the names in directories of the tenant and below them.
	DirectoryEncodings map[string]value.Encoding `yaml:"directory_encodings" default:"none"`
	// Unicode form in which names are created. For raw pathnames it is `none`.
	Normalization pathname.Normalization `yaml:"normalization" default:"nfc"`
	// Whether users may create names with control characters, such as line ends: `allow`, or `refuse` with 553.
	ControlCharacters ControlCharacters `yaml:"control_characters" default:"allow" since:"0.2.0"`

	// What a backslash in a pathname of a client is: a character of a `name`, or a `separator` of directories as a
	// slash is.
	Backslash pathname.Backslash `yaml:"backslash" default:"name" since:"0.2.0"`

	// What TYPE A does to a file: `convert` between CR LF on the way and LF in the bucket, or `keep` all bytes.
	ASCII ASCII `yaml:"ascii" default:"convert" since:"0.2.0"`
	// How SITE CHMOD is answered: `refuse` with 502, or `ignore` with 200. S3 keeps no permissions.
	Chmod Chmod `yaml:"chmod" default:"refuse" since:"0.2.0"`

	// Bytes that may be stored below `prefix`.
	Quota value.Size `yaml:"quota" default:"no limit"`
	// What happens to interrupted uploads: `keep` lets the user who began one resume it.
	Resume Resume `yaml:"resume" default:"discard"`
	// What STOR after REST does with the bytes of the file after those that the client sends: `keep` them, or
	// `truncate` the file.
	StorAfterRest StorAfterRest `yaml:"stor_after_rest" default:"keep" since:"0.2.0"`
	// Longest life of a link to a file, up to 168h.
	Presign time.Duration `yaml:"presign" default:"no links"`

	// Most that any user of the tenant may do.
	Permissions []Permission `yaml:"permissions" default:"all"`
	// Most that any user may do with some pathnames of the tenant, by pattern.
	PathPermissions map[string][]Permission `yaml:"path_permissions" default:"none"`
	// What happens to a file when another one of its name is stored. `version` needs a bucket with versioning.
	Overwrite Overwrite `yaml:"overwrite" default:"allow"`

	// Other buckets, or parts of buckets, as directories of the tenant, by absolute pathname.
	Folders map[string]*Folder `yaml:"folders" default:"none"`

	Objects Objects      `yaml:"objects"`
	S3      S3           `yaml:"s3"`
	Limits  TenantLimits `yaml:"limits"`
	Webhook Webhook      `yaml:"webhook"`

	// YAML file with more `users`, or a folder whose `.yaml` files have some. `users` is the only key there. The
	// server reads it again when it changes.
	UsersFile string `yaml:"users_file" default:"none" since:"0.2.0"`
	// The users, by name. At least one is required, unless `auth` has a service.
	Users map[string]*User `yaml:"users" include:"UsersFile"`
	Auth  Auth             `yaml:"auth"`
}

// A Folder shows another bucket, or another part of one, as a directory of a tenant.
type Folder struct {
	// Name of the S3 bucket.
	Bucket string `yaml:"bucket" default:"the tenant's"`
	// Beginning of all keys. A slash at its end may be left out.
	Prefix string `yaml:"prefix" default:"none"`
	// Most that any user may do in the folder.
	Permissions []Permission `yaml:"permissions" default:"all"`
	S3          S3           `yaml:"s3"`
}

// A User of a tenant.
type User struct {
	// Hash of the password, which `babelftp hash-password` prints. Hashes of other servers count too: argon2id,
	// bcrypt, SHA-512 and SHA-256 crypt.
	PasswordHash value.Secret `yaml:"password_hash" default:"required without certificates"`
	// Certificates of the user's clients. Each login must show one of them, and without `password_hash` needs no
	// password.
	Certificates []value.ClientCertificate `yaml:"certificates" default:"none" since:"0.2.0"`
	// Directory in which a login starts, as the user sees it. It confines no user: use `root`.
	Home string `yaml:"home" default:"/"`
	// Directory of the tenant that the user sees as `/`.
	Root string `yaml:"root" default:"/"`
	// What the user may do.
	Permissions []Permission `yaml:"permissions" default:"all"`
	// What the user may do with some pathnames, by pattern, in place of `permissions`.
	PathPermissions map[string][]Permission `yaml:"path_permissions" default:"none"`
	// What happens to a file when the user stores another one of its name.
	Overwrite Overwrite `yaml:"overwrite" default:"the tenant's"`
	// Language of the user's sessions until LANG chooses another one.
	Language language.Tag `yaml:"language" default:"the tenant's" since:"0.2.0"`
	// Bytes that may be stored below `root`, in addition to the quota of the tenant.
	Quota  value.Size `yaml:"quota" default:"no limit"`
	Limits UserLimits `yaml:"limits" since:"0.2.0"`
}

// NormalizationOf is the Unicode form of the tenant's names: NFC unless the tenant says otherwise, or has names that
// are no text.
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
