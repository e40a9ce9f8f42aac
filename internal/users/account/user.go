package account

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// A User is a user of a configuration or of a service, with the objects that the server built from its settings.
type User struct {
	*config.User
	Name   string
	Tenant *Tenant
	// Language is used until the client sends LANG; language.Und selects the default language of the tenant.
	Language language.Tag
	// DirectoryEncodings maps directories, as absolute paths in the user's view, to the encoding of the names in them
	// and below.
	DirectoryEncodings map[string]*pathname.Encoding
	// Policy combines the permissions of the tenant, its folders, its drop boxes and the user.
	Policy view.Policy

	key         string      // key of the user's state; the folded name for users of a service
	past        view.Policy // permissions for the directory of earlier versions itself
	deny        view.Names  // files that the user may not store
	maxFileSize int64       // in bytes, 0 for no limit
	mounts      []mount     // "/" is the last
	directories *view.Directories
	state       *state // set by use
}

// newUser returns a user with these settings. Limits and quotas apply after use is called.
func newUser(t *Tenant, name string, uc *config.User) *User {
	u := &User{
		User:               uc,
		Name:               config.NormalizeUser(name),
		key:                config.NormalizeUser(name),
		Tenant:             t,
		Language:           languageOf(t.Bundle, uc.Language),
		DirectoryEncodings: encodingsBelow(uc.Root, t.DirectoryEncodings),
		Policy:             policyOf(t.Tenant, uc),
		past: view.Policy{
			layerOf(t.Permissions, t.PathPermissions), layerOf(uc.Permissions, uc.PathPermissions),
		}.Naming("/" + t.VersionsDirectory),
		deny:        view.NewNames(slices.Concat(t.Files.Deny, uc.Files.Deny)),
		maxFileSize: smallest(int64(t.Files.MaxSize), int64(uc.Files.MaxSize)),
		mounts:      userMounts(t.bucket, uc.Root, t.Compatibility.NormalizationOf().Normalize),
		directories: view.NewDirectories(uc.Home),
	}
	if haveKeys(t.rules) {
		u.Policy = append(u.Policy, dropBoxes(t.rules, u.Name).Below(uc.Root))
	}
	return u
}

// policyOf returns the policy of a user by the permissions in the configuration.
func policyOf(t *config.Tenant, uc *config.User) view.Policy {
	return view.Policy{
		layerOf(t.Permissions, t.PathPermissions).Below(uc.Root),
		folderPermissions(t.Folders).Below(uc.Root),
		layerOf(uc.Permissions, uc.PathPermissions),
	}
}

// root returns the mount of "/", which the quota applies to.
func (u *User) root() mount { return u.mounts[len(u.mounts)-1] }

// smallest returns the smaller of two limits, where 0 means unlimited.
func smallest(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// use applies the limits and the quota of the user.
func (u *User) use(states *states) {
	u.state = states.of(u.stateKey())
	u.state.use(u.limits().Usage, u.Quota)
}

// closedReason returns why the user may not log in, as a name of package limits, or an empty string.
func (u *User) closedReason(now time.Time) string {
	switch {
	case u.Disabled:
		return limits.UserDisabled
	case u.Expires.Passed(now):
		return limits.UserExpired
	}
	return ""
}

// limits returns the limits of the user; those that are not set come from the limits per user of the tenant.
func (u *User) limits() config.Scope { return u.Limits.Or(u.Tenant.Limits.User) }

// addUse records in the buckets of a user the permissions and the overwrite mode that the user needs. It returns the
// buckets that were verified for other overwrite modes.
func (u *User) addUse() (unsuited []*s3client.Bucket) {
	for _, m := range u.mounts {
		_, most := u.Policy.Bounds(m.at)
		m.bucket.AddUse(s3client.Use{
			Write: most.Write || most.Mkdir, Delete: most.Delete || most.Rename,
			Restore: most.Read && u.Tenant.Restore.Days > 0, Quarantine: u.Tenant.Inspect.Quarantine,
		})
		if most.Write && !m.bucket.AddOverwriteMode(u.Tenant.OverwriteOf(u.User)) {
			unsuited = append(unsuited, m.bucket)
		}
		if u.Tenant.VersionsDirectory != "" {
			m.bucket.AddUse(s3client.Use{Past: true})
			if !m.bucket.AddOverwriteMode(config.VersionOverwrite) {
				unsuited = append(unsuited, m.bucket)
			}
		}
	}
	return unsuited
}

// Zone returns the time zone of the user's dates.
func (u *User) Zone() *time.Location {
	if u.Timezone.IsSet() {
		return u.Timezone.Location()
	}
	return u.Tenant.Timezone.Location()
}

// NoOverwrite reports whether the user may neither replace files nor append to them.
func (u *User) NoOverwrite() bool { return u.Tenant.OverwriteOf(u.User) == config.DenyOverwrite }

// MayPresign reports whether the user may create presigned links to some files.
func (u *User) MayPresign() bool {
	_, most := u.Policy.Bounds("/")
	return most.Read && u.Tenant.Presign > 0
}

// QuotaHidden reports whether the usage must be hidden from the user, because it would reveal whether files exist in
// directories that the user may not list.
func (u *User) QuotaHidden() bool {
	least, _ := u.Policy.Bounds("/")
	return !least.List
}

// compatibilityAt returns the compatibility settings for a client of the user with this address.
func (u *User) compatibilityAt(addr netip.Addr) config.Compatibility {
	return u.Compatibility.Or(u.Tenant.CompatibilityAt(addr))
}

// hasCharset reports whether a charset is configured for the user or for the network of the client.
func (u *User) hasCharset(addr netip.Addr) bool {
	return u.Compatibility.Charset.Encoding != nil || u.Tenant.CompatibilityOfNetwork(addr).Charset.Encoding != nil
}

// stateKey returns the key of the user's state.
func (u *User) stateKey() stateKey { return stateKey{u.Tenant.Name, u.key} }

// owner returns the owner name of the user's uploads.
func (u *User) owner() string { return Owner(u.Name, u.Tenant.Name) }

// Owner returns the name under which uploads of a user are recorded. It includes the tenant because two tenants can
// share a folder.
func Owner(user, tenant string) string { return user + "@" + tenant }

// encodingsBelow returns the encodings of a tenant's directories for a user whose "/" is root. Directories outside of
// root are omitted; "/" gets the encoding of root or of its nearest parent. Names are in NFC because the control
// connection compares them in NFC.
func encodingsBelow(root string, dirs map[string]value.Encoding) map[string]*pathname.Encoding {
	seen := map[string]*pathname.Encoding{}
	root = norm.NFC.String(strings.TrimSuffix(root, "/"))
	around := ""
	for dir, encoding := range dirs {
		dir = norm.NFC.String(dir)
		switch {
		case strings.HasPrefix(dir, root+"/"):
			seen[strings.TrimPrefix(dir, root)] = encoding.Encoding
		case strings.HasPrefix(root+"/", dir+"/") && len(dir) > len(around):
			around = dir
			seen["/"] = encoding.Encoding
		}
	}
	return seen
}

// languageOf returns the language of a user, or language.Und if the user has none or the tenant does not offer it.
func languageOf(bundle *i18n.Bundle, tag language.Tag) language.Tag {
	found, ok := bundle.Match(tag)
	if tag == language.Und || !ok {
		return language.Und
	}
	return found
}
