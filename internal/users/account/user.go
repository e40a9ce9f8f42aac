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

// A User is one of a configuration, or of a directory or hook, with what the server has made of the settings.
type User struct {
	*config.User
	Name   string
	Tenant *Tenant
	// Language is the user's until the client says LANG; undetermined means the tenant's.
	Language language.Tag
	// DirectoryEncodings are the directories as the user sees them, absolute, whose names and those below have an
	// encoding of their own.
	DirectoryEncodings map[string]*pathname.Encoding
	// Policy says what the user may do, by the settings of the tenant, of its folders and of the user.
	Policy view.Policy

	key         string      // of the state; the folded name for a user of a directory, hook or old server
	past        view.Policy // what the policy says of the directory of earlier versions itself
	deny        view.Names  // files that the user may not store
	maxFileSize int64       // in bytes, 0 for no limit
	mounts      []mount     // what the user sees
	directories *view.Directories
	state       *state // nil until use
}

// newUser is a user with settings. The limits and the quota count when it is used.
func newUser(t *Tenant, name string, uc *config.User) *User {
	return &User{
		User:               uc,
		Name:               config.NormalizeUser(name),
		key:                config.NormalizeUser(name),
		Tenant:             t,
		Language:           languageOf(t.Bundle, uc.Language),
		DirectoryEncodings: encodingsBelow(uc.Root, t.DirectoryEncodings),
		Policy: view.Policy{
			layerOf(t.Permissions, t.PathPermissions).Below(uc.Root),
			folderPermissions(t.Folders).Below(uc.Root),
			layerOf(uc.Permissions, uc.PathPermissions),
		},
		past: view.Policy{
			layerOf(t.Permissions, t.PathPermissions), layerOf(uc.Permissions, uc.PathPermissions),
		}.Naming("/" + t.VersionsDirectory),
		deny:        view.NewNames(slices.Concat(t.Files.Deny, uc.Files.Deny)),
		maxFileSize: smallest(int64(t.Files.MaxSize), int64(uc.Files.MaxSize)),
		mounts:      userMounts(t.bucket, uc.Root, t.Compatibility.NormalizationOf().Normalize),
		directories: view.NewDirectories(uc.Home),
	}
}

// root returns the mount of "/", for which the quota is.
func (u *User) root() mount { return u.mounts[len(u.mounts)-1] }

// smallest is the smaller one of two limits, of which 0 is none.
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

// closed is why the user may not log in, a name of package limits. It is empty for a user who may.
func (u *User) closed(now time.Time) string {
	switch {
	case u.Disabled:
		return limits.UserDisabled
	case u.Expires.Passed(now):
		return limits.UserExpired
	}
	return ""
}

// limits returns the limits of the user, or the limits of each user of the tenant where the user has none.
func (u *User) limits() config.Scope { return u.Limits.Or(u.Tenant.Limits.User) }

// addUse notes in the buckets of a user what the user may do there, and how the user overwrites files. It returns
// those that were verified for other modes.
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

// zone is the time zone of the user's dates.
func (u *User) zone() *time.Location {
	if u.Timezone.Given() {
		return u.Timezone.Location()
	}
	return u.Tenant.Timezone.Location()
}

// NoOverwrite says that the storage lets the user replace no file, and append to none.
func (u *User) NoOverwrite() bool { return u.Tenant.OverwriteOf(u.User) == config.DenyOverwrite }

// MayPresign says that there are files to which the user may make links, for HTTPS clients.
func (u *User) MayPresign() bool {
	_, most := u.Policy.Bounds("/")
	return most.Read && u.Tenant.Presign > 0
}

// QuotaHidden says that the user must not see how much is stored, which would show whether files exist that the user
// may not list.
func (u *User) QuotaHidden() bool {
	least, _ := u.Policy.Bounds("/")
	return !least.List
}

// compatibilityAt is how a client of the user at an address is treated.
func (u *User) compatibilityAt(addr netip.Addr) config.Compatibility {
	return u.Compatibility.Or(u.Tenant.CompatibilityAt(addr))
}

// hasCharset reports whether a charset is configured for the user, or for the network of the client.
func (u *User) hasCharset(addr netip.Addr) bool {
	return u.Compatibility.Charset.Encoding != nil || u.Tenant.CompatibilityOfNetwork(addr).Charset.Encoding != nil
}

// stateKey is the key of the user's state.
func (u *User) stateKey() stateKey { return stateKey{u.Tenant.Name, u.key} }

// owner is the owner of the user's uploads.
func (u *User) owner() string { return Owner(u.Name, u.Tenant.Name) }

// Owner is the owner of a user's uploads. Two tenants can share a folder.
func Owner(user, tenant string) string { return user + "@" + tenant }

// encodingsBelow returns the encodings of a tenant's directories for a user who sees root as "/". It leaves out
// directories outside of root. "/" has the encoding of root, or of the nearest directory above it. The control
// connection compares the names in NFC.
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

// languageOf is the language of a user, undetermined if the user has none that the tenant offers.
func languageOf(bundle *i18n.Bundle, tag language.Tag) language.Tag {
	found, ok := bundle.Match(tag)
	if tag == language.Und || !ok {
		return language.Und
	}
	return found
}
