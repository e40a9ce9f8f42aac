package config

import (
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/names/hostname"
	"github.com/babelftp/babelftp/internal/names/pathname"
)

func (v *validator) tenants() {
	p := yamlconf.Path{"tenants"}
	if len(v.cfg.Tenants) == 0 {
		v.report(p, "there are none: write one at least, with its bucket and users")
	}
	tenantName := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	for name, t := range v.cfg.Tenants {
		if !tenantName.MatchString(name) {
			v.report(
				p.Child(name), "%q is no name for a tenant: write up to 63 ASCII letters, digits, -, _ and .", name)
		}
		t.check(v, p.Child(name))
	}
	v.sharedHosts()
	v.ambiguousUsers()
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
	t.Webhook.check(v, p.Child("webhook"))
	v.permissions(p, t.Permissions, t.PathPermissions)
	t.checkFolders(v, p.Child("folders"))
	if t.Resume == KeepInterrupted && v.cfg.AbandonedUploads == 0 {
		v.report(p.Child("resume"), "needs abandoned_uploads: an upload that no client resumes would stay permanently")
	}
	t.Objects.check(v, p.Child("objects"))
	t.checkEncryption(v, p.Child("objects"))
	t.Limits.check(v, p.Child("limits"))
	t.S3.check(v, p.Child("s3"), p[1:])
	t.Auth.check(v, p.Child("auth"))
	if len(t.Users) == 0 && !t.Auth.Given() {
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

// checkPresign checks the life of links. One that is signed with the credentials of a role ends with them.
func (t *Tenant) checkPresign(v *validator, p yamlconf.Path) {
	if t.Presign != 0 && (t.Presign < time.Second || t.Presign > maxPresign) {
		v.report(p,
			"%s is not between 1s and %.0fh, which S3 allows: write another, or remove the key for no links",
			t.Presign, maxPresign.Hours())
	}
	for _, s := range v.cfg.storagesOf(t) {
		if most := s.AssumeRole.DurationOf() - RoleRenewBefore; s.AssumeRole.Given() && most > 0 &&
			t.Presign > most {
			v.report(p,
				"%s is longer than the credentials of s3.assume_role are good: write at most %s, or a longer "+
					"s3.assume_role.duration", t.Presign, most)
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

// bucketAndPrefix checks the bucket, where there is one, and the prefix that p, a tenant or a folder, names.
func (v *validator) bucketAndPrefix(p yamlconf.Path, bucket, prefix string) {
	if bucket != "" {
		if broken := value.BucketProblem(bucket); broken != "" {
			v.report(p.Child("bucket"), "%q is no name for a bucket: %s", bucket, broken)
		}
	}
	if broken := value.PrefixProblem(prefix); broken != "" {
		v.report(p.Child("prefix"), "%q is no prefix of keys: %s", prefix, broken)
	}
}

func (u *User) check(v *validator, p yamlconf.Path, name string) {
	if name == "" || strings.ContainsFunc(name, unicode.IsControl) {
		v.report(p, "%q is no name for a user: write one without control characters", name)
	}
	hash := p.Child("password_hash")
	if u.PasswordHash.Empty() {
		if len(u.Certificates) == 0 {
			v.report(hash, "is missing: write what `babelftp hash-password` prints")
		}
	} else if problem := passwordhash.Problem(u.PasswordHash.Reveal()); problem != "" {
		v.report(hash, "%s: write what `babelftp hash-password` prints", problem)
	}
	u.checkSettings(v, p)
}

// Validate checks the settings that p leads to, of a user whom another service described: all but the name. It gives
// directories their one form.
func (u *User) Validate(p yamlconf.Path, positions yamlconf.Positions) Problems {
	u.Home, u.Root = cleanDirectory(u.Home), cleanDirectory(u.Root)
	v := &validator{cfg: &Config{positions: positions}}
	u.checkSettings(v, p)
	u.checkNotLocal(v, p)
	return v.problems
}

// checkSettings checks all of a user but the name and the password.
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
				v.report(p.Child(d.key), "%q cannot be one: %s", d.value, broken)
			}
		}
	}
	v.permissions(p, u.Permissions, u.PathPermissions)
	u.Limits.check(v, p.Child("limits"))
}

// maxPresign is how long S3 lets a link be good:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
const maxPresign = 7 * 24 * time.Hour

// checkEncodings checks how the names of a tenant are written.
func (t *Tenant) checkEncodings(v *validator, p yamlconf.Path) {
	if t.PathnameEncoding.Raw() && t.Normalization != "" && t.Normalization != pathname.None {
		v.report(p.Child("normalization"),
			"raw names are kept as they are, byte for byte: write none, or remove the key")
	}
	if t.PathnameEncoding.Raw() && t.Backslash == pathname.BackslashSeparates {
		v.report(p.Child("backslash"),
			"in raw names no byte is known to be a backslash: remove the key, or name the charset "+
				"in pathname_encoding")
	}
	seen := map[string]bool{} // in the form in which names are compared
	for _, name := range slices.Sorted(maps.Keys(t.DirectoryEncodings)) {
		dir := p.Child("directory_encodings").Child(name)
		composed := norm.NFC.String(name)
		if seen[composed] {
			v.report(dir, "another one differs from it in its Unicode form only: remove one")
		}
		seen[composed] = true
		if broken := value.DirectoryProblem(name, "pathname_encoding"); broken != "" {
			v.report(dir, "%s", broken)
		}
	}
}

// sharedHosts reports hosts that are no host names, or that lead to more than one tenant.
func (v *validator) sharedHosts() {
	owners := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(v.cfg.Tenants)) {
		for i, host := range v.cfg.Tenants[name].Hosts {
			p := yamlconf.Path{"tenants", name, "hosts"}.Child(strconv.Itoa(i))
			_, notAddress := netip.ParseAddr(host) // RFC 7151, section 3.1 allows one
			if name, ok := hostname.Parse(host); notAddress != nil && (!ok || name != host) {
				v.report(p, "%q is no host name: write it like ftp.example.com", host)
				continue
			}
			switch owner, taken := owners[host]; {
			case taken && owner == name:
				v.report(p, "%s is written twice: remove one", host)
			case taken:
				v.report(p,
					"%s leads to the tenant %s too: a host chooses one tenant, remove it from one of them", host,
					owner)
			default:
				owners[host] = name
			}
		}
	}
}

// ambiguousUsers reports names that do not tell users apart when no host has chosen the tenant.
func (v *validator) ambiguousUsers() {
	type owner struct{ tenant, user string }
	plain := map[string]owner{} // by name, the first tenant that has it
	qualified := map[string]owner{}
	names := slices.Sorted(maps.Keys(v.cfg.Tenants))
	for _, tenant := range names {
		for user := range v.cfg.Tenants[tenant].Users {
			qualified[NormalizeUser(user)+"@"+tenant] = owner{tenant, user}
		}
	}
	for _, tenant := range names {
		t := v.cfg.Tenants[tenant]
		for _, user := range slices.Sorted(maps.Keys(t.Users)) {
			p := yamlconf.Path{"tenants", tenant, "users", user}
			name := NormalizeUser(user)
			if other, taken := qualified[name]; taken {
				v.report(p,
					"%s is also how the user %s of the tenant %s logs in without a host: rename one", user,
					other.user, other.tenant)
			}
			first, taken := plain[name]
			switch {
			case !taken:
				plain[name] = owner{tenant, user}
			case first.tenant == tenant:
				v.report(p, "%s and %s differ in their Unicode form only: remove one", user, first.user)
			case len(t.Hosts) == 0 || len(v.cfg.Tenants[first.tenant].Hosts) == 0:
				v.report(p,
					"the tenant %s has a user of this name too, and %s has no host to tell them apart: give both "+
						"tenants hosts, "+
						"or rename one user", first.tenant, v.hostless(first.tenant, tenant))
			}
		}
	}
}

// hostless is the first of the tenants that has no host.
func (v *validator) hostless(tenants ...string) string {
	i := slices.IndexFunc(tenants, func(name string) bool { return len(v.cfg.Tenants[name].Hosts) == 0 })
	return tenants[i]
}
