package config

import (
	"maps"
	"slices"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// permissions checks what p, a tenant or a user, says of permissions.
func (v *validator) permissions(p yamlconf.Path, everywhere []Permission, byPath map[string][]Permission) {
	all, paths := p.Child("permissions"), p.Child("path_permissions")
	if everywhere != nil && len(everywhere) == 0 && len(byPath) == 0 {
		v.report(all,
			"there are none: write one of %s, or remove the key for all of them",
			yamlconf.OneOf(yamlconf.EnumValues(AllPermissions()...)))
	}
	v.checkDuplicates(all, everywhere)
	seen := map[string]bool{} // in the form in which names are compared
	for _, pattern := range slices.Sorted(maps.Keys(byPath)) {
		at := paths.Child(pattern)
		composed := norm.NFC.String(pattern)
		if seen[composed] {
			v.report(at, "another one differs from it in its Unicode form only: remove one")
		}
		seen[composed] = true
		if broken := value.PatternProblem(pattern); broken != "" {
			v.report(at, "%s", broken)
		}
		if byPath[pattern] == nil {
			v.report(at,
				"is empty: write one of %s, or [] for none of them",
				yamlconf.OneOf(yamlconf.EnumValues(AllPermissions()...)))
		}
		v.checkDuplicates(at, byPath[pattern])
	}
}

// checkFolders checks the folders of a tenant.
func (t *Tenant) checkFolders(v *validator, p yamlconf.Path) {
	seen := map[string]bool{} // in the form in which names are compared
	for _, name := range slices.Sorted(maps.Keys(t.Folders)) {
		at, f := p.Child(name), t.Folders[name]
		composed := norm.NFC.String(name)
		if seen[composed] {
			v.report(at, "another one differs from it in its Unicode form only: remove one")
		}
		seen[composed] = true
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

// checkDuplicates reports permissions of a list that are in it twice.
func (v *validator) checkDuplicates(p yamlconf.Path, permissions []Permission) {
	for i, permission := range permissions {
		if permission != "" && slices.Contains(permissions[:i], permission) {
			v.report(p, "%s is written twice: remove one", permission)
		}
	}
}
