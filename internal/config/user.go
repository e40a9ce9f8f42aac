package config

import (
	"path"
	"strings"
	"unicode"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A User is a user of a tenant.
type User struct {
	// Password hash: argon2id, yescrypt, bcrypt, SHA-512 crypt or SHA-256 crypt. `babelftp hash-password` prints one;
	// hashes of other servers work too.
	PasswordHash value.Secret `yaml:"password_hash" default:"required without certificates"`
	// Client certificates, one of which the client must present at each login. Without `password_hash`, no password
	// is required.
	Certificates []value.ClientCertificate `yaml:"certificates" default:"none"`
	// Refuse logins of the user. The right password is answered with 530 and the reason; running sessions end with
	// 421.
	Disabled bool `yaml:"disabled"`
	// Let the user do nothing but change the password with `SITE PSWD`, which removes this key. Requires the permission
	// `password`.
	MustChangePassword bool `yaml:"must_change_password"`
	// Last day in UTC on which the user may log in, or a time.
	Expires value.Expiry `yaml:"expires" default:"never"`
	// Directory in which a session starts. To restrict a user to a directory, use `root`.
	Home string `yaml:"home" default:"/"`
	// Directory of the tenant that the user sees as `/`.
	Root string `yaml:"root" default:"/"`
	// Operations that the user may perform. `password` allows `SITE PSWD`.
	Permissions []Permission `yaml:"permissions" default:"all except password"`
	// Permissions for paths that match a pattern, instead of `permissions`.
	PathPermissions map[string][]Permission `yaml:"path_permissions" default:"none"`
	// Restrictions on the files that the user may store, in addition to the restrictions of the tenant.
	Files FileRules `yaml:"files"`
	// Effect of an upload on an existing file.
	Overwrite Overwrite `yaml:"overwrite" default:"the tenant's"`
	// Language of the user's sessions, unless the client selects another one with LANG.
	Language language.Tag `yaml:"language" default:"the tenant's"`
	// Time zone of dates in `versions_directory`.
	Timezone value.Zone `yaml:"timezone" default:"the tenant's"`
	// Maximum size of all files in `root`. The quota of the tenant applies as well.
	Quota bytesize.Size `yaml:"quota" default:"no limit"`
	// Adaptations for the user's clients. They take precedence over the settings of the network and the tenant.
	Compatibility Compatibility `yaml:"compatibility"`
	// TLS settings that override the tenant's.
	TLS UserTLS `yaml:"tls"`
	// Limits for the user, instead of those that the tenant sets for each user.
	Limits Scope `yaml:"limits"`
}

func (u *User) check(v *validator, p yamlconf.Path, name string) {
	if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
		v.report(p, "%q is not a valid user name: write one without control characters", name)
	}
	hash := p.Child("password_hash")
	if u.PasswordHash.Empty() {
		if len(u.Certificates) == 0 && !u.Disabled && !v.broken(p, "certificates", "disabled") {
			v.report(hash, "is missing: write what `babelftp hash-password` prints, or disabled: true")
		}
	} else if problem := passwordhash.Problem(u.PasswordHash.Reveal()); problem != "" {
		v.report(hash, "%s: write what `babelftp hash-password` prints", problem)
	}
	v.checkRequired(p.Child("tls"), u.TLS.Required)
	u.checkSettings(v, p)
}

// Validate checks the settings of a user from a directory or hook. It cleans the paths of directories.
func (u *User) Validate(p yamlconf.Path, positions yamlconf.Positions) Problems {
	u.normalize()
	v := &validator{cfg: &Config{positions: positions}}
	u.checkSettings(v, p)
	u.checkNotLocal(v, p)
	return v.problems
}

// checkSettings validates all settings except for the name and the password.
func (u *User) checkSettings(v *validator, p yamlconf.Path) {
	for _, d := range []struct{ key, value string }{{"home", u.Home}, {"root", u.Root}} {
		switch {
		case d.value == "":
		case !path.IsAbs(d.value):
			v.report(p.Child(d.key), "%q is not absolute: begin it with /", d.value)
		case strings.ContainsFunc(d.value, unicode.IsControl):
			v.report(p.Child(d.key), "%q contains control characters", d.value)
		case d.key == "root":
			if broken := value.PrefixProblem(strings.TrimPrefix(d.value, "/")); broken != "" {
				v.report(p.Child(d.key), "%q is not valid: %s", d.value, broken)
			}
		}
	}
	if len(u.Certificates) == 0 {
		v.rejectEmpty(p.Child("certificates"))
	}
	if len(u.Files.Deny) == 0 && u.Files.MaxSize == 0 {
		v.rejectEmpty(p.Child("files"))
	}
	v.permissions(p, u.Permissions, u.PathPermissions)
	u.Files.check(v, p.Child("files"))
	u.Compatibility.check(v, p.Child("compatibility"))
	notNegative(v, p.Child("limits"), u.Limits)
}

// checkNotLocal reports settings that only users in the configuration can have.
func (u *User) checkNotLocal(v *validator, p yamlconf.Path) {
	if !u.PasswordHash.Empty() {
		v.report(p.Child("password_hash"), "is not allowed here: the service verifies the password")
	}
	if u.MustChangePassword {
		v.report(p.Child("must_change_password"), "is not allowed here: let the service ask for a new password")
	}
	if u.TLS.Required != nil {
		v.report(p.Child("tls").Child("required"),
			"is not allowed here: set it in the tenant, because the user is unknown before the password is verified")
	}
	if u.Overwrite != "" {
		v.report(p.Child("overwrite"),
			"is not allowed here: set it in the tenant, because the server checks at its start "+
				"what the bucket can do")
	}
}
