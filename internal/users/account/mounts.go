package account

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// A mount is a directory in which a user sees a bucket or a part of it.
type mount struct {
	at     string // absolute, in the user's view
	bucket *s3client.Bucket
	prefix string // prefix of the object keys
}

// userMounts returns the mounts of a user whose "/" is the directory root of the tenant: first the folders below
// root, then "/" itself.
func userMounts(b *s3client.Bucket, root string, form func(name string) string) []mount {
	root = path.Clean("/" + root)
	whole := mount{at: "/", bucket: b, prefix: b.Prefix + keyPrefix(root)}
	around := ""
	var below []mount
	for _, f := range b.Folders {
		folder := view.Canonical(f.Folder)
		if rest, ok := view.Within(view.Canonical(root), folder); ok {
			if len(folder) > len(around) {
				around = folder
				whole = mount{at: "/", bucket: f, prefix: f.Prefix + keyPrefix(lastSegments(root, rest))}
			}
		} else if rest, ok := view.Within(folder, view.Canonical(root)); ok {
			below = append(below, mount{at: form(lastSegments(f.Folder, rest)), bucket: f, prefix: f.Prefix})
		}
	}
	return append(below, whole)
}

// lastSegments returns the last segments of a pathname, as many as suffix has. Unlike suffix, they have the Unicode
// form of the pathname.
func lastSegments(name, suffix string) string {
	if suffix == "/" {
		return suffix
	}
	all := strings.Split(name, "/")
	return "/" + strings.Join(all[len(all)-strings.Count(suffix, "/"):], "/")
}

// keyPrefix returns the prefix of all keys in a directory, relative to the prefix of the bucket.
func keyPrefix(dir string) string {
	if dir = strings.Trim(dir, "/"); dir == "" {
		return ""
	}
	return dir + "/"
}

// folderPermissions returns the policy layer with the permissions of the folders.
func folderPermissions(folders map[string]*config.Folder) view.Layer {
	plain := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
	byPath := map[string][]config.Permission{}
	for name, f := range folders {
		permissions := f.Permissions
		if permissions == nil {
			permissions = config.FilePermissions() // also if the folder is below one with fewer permissions
		}
		byPath[plain.Replace(norm.NFC.String(name))] = permissions
	}
	return layerOf(nil, byPath)
}

// mounts returns the stores of the user's folders for a session. If the bucket of "/" cannot be used, the login
// fails. If the bucket of another folder cannot be used, all operations in that folder fail until the next login.
// Waiting for a bucket ends when a configuration change replaces the tenant.
func (r *Registry) mounts(
	ctx context.Context, u *User, client config.Compatibility, req *LoginRequest, scopes limits.Scopes,
) (view.Mounts, error) {
	var mounts []view.Mount
	for _, m := range u.mounts {
		objects := m.bucket.ObjectClient()
		if err := m.bucket.AwaitUsable(ctx, u.Tenant.replaced); err != nil {
			if m.at == "/" {
				return nil, &UnavailableError{Tenant: u.Tenant,
					Err: fmt.Errorf("user %s: %w", u.Name, err)}
			}
			objects = m.bucket.RefusingClient()
		}
		opts := r.storageOptions(r.current.Load().files, u, m)
		opts.BeforeCommit, opts.BeginOperation = req.BeforeCommit, scopes.AcquireOperation
		opts.Truncate = client.StorAfterRest == config.TruncateRest
		opts.BeginHash = func() (func(context.Context, int) error, func(), error) {
			end, err := scopes.AcquireTransfer()
			return scopes.Pace(false).Take, end, err
		}
		storage, err := driver.New(objects, m.bucket.Name, &opts)
		if err != nil {
			return nil, fmt.Errorf("tenant %s: user %s: directory %s: %w", u.Tenant.Name, u.Name, m.at, err)
		}
		mounts = append(mounts, view.Mount{
			Dir: m.at, Store: view.NewStore(storage), Account: m.bucket.Client, Key: u.keysIn(m),
		})
	}
	return view.NewMounts(mounts...), nil
}

// storageOptions returns the options for the file system of a folder, without the options that depend on the session.
func (r *Registry) storageOptions(opts driver.Options, u *User, m mount) driver.Options {
	b := m.bucket
	opts.NoOverwrite = u.NoOverwrite()
	if u.Tenant.Resumable() {
		opts.Owner = u.owner()
	}
	opts.Restore = restoreOf(u.Tenant.Restore)
	opts.Prefix, opts.Quotas = m.prefix, r.quotasIn(b, u)
	opts.Presigner, opts.Endpoint, opts.Objects = b.Presigner, b.Endpoint, b.Objects
	opts.Rule = u.rulesIn(m.at)
	if b.Usable() { // otherwise a Watcher may be about to set them
		opts.Journal, opts.Profile = b.Journal, b.SessionProfile()
	}
	if opts.Memory != nil {
		opts.Memory = opts.Memory.For(u.Tenant.Name, u.Name)
	}
	if opts.Endpoint != nil {
		opts.Endpoint = opts.Endpoint.For(u.Tenant.Name, u.Name)
	}
	opts.Logger = r.log.With("tenant", u.Tenant.Name, "user", u.Name)
	opts.Inspect, opts.Quarantine = u.Tenant.inspections(m.at, opts.Logger), u.Tenant.Inspect.Quarantine
	return opts
}

// restoreOf returns how the driver restores archived objects.
func restoreOf(r config.Restore) driver.Restore {
	tier := types.TierStandard
	switch r.Tier {
	case config.ExpeditedRestore:
		tier = types.TierExpedited
	case config.BulkRestore:
		tier = types.TierBulk
	}
	return driver.Restore{Days: int32(r.Days), Tier: tier}
}

// layerOf returns the policy layer for these permissions; nil grants all permissions.
func layerOf(everywhere []config.Permission, byPattern map[string][]config.Permission) view.Layer {
	if everywhere == nil {
		everywhere = config.FilePermissions()
	}
	rights := make(map[string]view.Rights, len(byPattern))
	for pattern, permissions := range byPattern {
		rights[pattern] = rightsOf(permissions)
	}
	return view.NewLayer(rightsOf(everywhere), rights)
}

func rightsOf(permissions []config.Permission) view.Rights {
	has := func(p config.Permission) bool { return slices.Contains(permissions, p) }
	return view.Rights{
		List: has(config.List), Read: has(config.Read), Write: has(config.Write),
		Delete: has(config.Delete), Rename: has(config.Rename), Mkdir: has(config.Mkdir),
	}
}
