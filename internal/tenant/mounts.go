package tenant

import (
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/s3client"
	"github.com/babelftp/babelftp/internal/vfs"
)

// A mount is a directory under which a user sees a bucket, or a part of one.
type mount struct {
	at     string // absolute, as the user sees it
	bucket *s3client.Bucket
	prefix string // of the keys
}

// userMounts returns the mounts of a user whose "/" is root in the bucket of the tenant: those of the folders below root, then that of "/".
func userMounts(b *s3client.Bucket, root string, form func(name string) string) []mount {
	root = path.Clean("/" + root)
	whole := mount{at: "/", bucket: b, prefix: b.Prefix + keyPrefix(root)}
	around := ""
	var below []mount
	for _, f := range b.Folders {
		folder := vfs.Canonical(f.Folder)
		if rest, ok := vfs.Within(vfs.Canonical(root), folder); ok {
			if len(folder) > len(around) {
				around = folder
				whole = mount{at: "/", bucket: f, prefix: f.Prefix + keyPrefix(lastSegments(root, rest))}
			}
		} else if rest, ok := vfs.Within(folder, vfs.Canonical(root)); ok {
			below = append(below, mount{at: form(lastSegments(f.Folder, rest)), bucket: f, prefix: f.Prefix})
		}
	}
	return append(below, whole)
}

// lastSegments returns as many segments from the end of a pathname as suffix has. They keep the Unicode form of the pathname.
func lastSegments(name, suffix string) string {
	if suffix == "/" {
		return suffix
	}
	all := strings.Split(name, "/")
	return "/" + strings.Join(all[len(all)-strings.Count(suffix, "/"):], "/")
}

// keyPrefix is what the keys below a directory begin with, behind the prefix of the bucket.
func keyPrefix(dir string) string {
	if dir = strings.Trim(dir, "/"); dir == "" {
		return ""
	}
	return dir + "/"
}

// folderPermissions returns the layer of a policy that restricts users to the permissions of the folders.
func folderPermissions(folders map[string]*config.Folder) vfs.Layer {
	plain := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
	byPath := map[string][]config.Permission{}
	for name, f := range folders {
		permissions := f.Permissions
		if permissions == nil {
			permissions = config.AllPermissions() // also in a folder that has fewer
		}
		byPath[plain.Replace(norm.NFC.String(name))] = permissions
	}
	return layerOf(nil, byPath)
}
