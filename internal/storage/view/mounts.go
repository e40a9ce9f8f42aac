package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/driver"
)

// A Mount is a store at a directory that the user sees.
type Mount struct {
	Dir     string // absolute and clean, as the user sees it
	Store   Store
	Account any // the S3 account, comparable; S3 copies only between mounts of equal accounts
	// Key returns the name within the mount under which a new file is stored, or "" if it is stored under its own name.
	// Each call returns a different name. Users cannot list or read files where Key returns a name. It may be nil.
	Key func(ctx context.Context, name string, origin driver.Origin) string
}

// Mounts combines several stores, one of them at "/". Each pathname belongs to the deepest mount above it, which hides
// the files of other stores there.
//
// The directory of a mount and its parents exist without an object. They can be neither removed nor renamed.
type Mounts []Mount // deepest first

// NewMounts returns sorted mounts. One of them must be at "/".
func NewMounts(mounts ...Mount) Mounts {
	sorted := slices.Clone(mounts)
	// Of all directories above a name, the deepest one is the longest.
	slices.SortFunc(sorted, func(a, b Mount) int { return len(b.Dir) - len(a.Dir) })
	return sorted
}

// Within returns the part of name below dir, and false if name is not below dir. Both are absolute and clean.
func Within(name, dir string) (string, bool) {
	switch {
	case dir == "/":
		return name, true
	case name == dir:
		return "/", true
	case strings.HasPrefix(name, dir+"/"):
		return name[len(dir):], true
	}
	return "", false
}

// leadsTo reports whether name is dir or one of its parents. Both are absolute and clean.
func leadsTo(name, dir string) bool {
	_, ok := Within(dir, name)
	return ok
}

// find returns the mount of a pathname, which is absolute and clean, and the pathname within the mount.
func (m Mounts) find(name string) (of *Mount, inner string) {
	for i := range m {
		if inner, ok := Within(name, m[i].Dir); ok {
			return &m[i], inner
		}
	}
	panic("view: no store is mounted at the root")
}

// leadTo reports whether a pathname is the directory of a mount or one of its parents. The mount at "/" does not
// count.
func (m Mounts) leadTo(name string) bool {
	return slices.ContainsFunc(m, func(of Mount) bool { return of.Dir != "/" && leadsTo(name, of.Dir) })
}

// in returns the entries of a directory that lead to mounts, sorted and with a trailing slash as in keys. hides has
// the names of files that a mount hides.
func (m Mounts) in(name string) (own, hides []string) {
	for _, of := range m {
		rest, ok := Within(of.Dir, name)
		if !ok || rest == "/" {
			continue
		}
		first, deeper, _ := strings.Cut(rest[len("/"):], "/")
		own = append(own, first+"/")
		if deeper == "" {
			hides = append(hides, first)
		}
	}
	slices.Sort(own)
	return slices.Compact(own), hides
}

// ErrOtherAccount reports a move between mounts of two accounts. It wraps [errors.ErrUnsupported].
var ErrOtherAccount = fmt.Errorf("the folders belong to different S3 accounts, so a client must download and upload: %w (%w)",
	errors.ErrUnsupported, syscall.EXDEV)

// withMounts inserts directories that lead to mounts into a listing, in the order of keys, and omits what they hide.
func withMounts(entries iter.Seq2[fs.FileInfo, error], own, hides []string) iter.Seq2[fs.FileInfo, error] {
	return func(yield func(fs.FileInfo, error) bool) {
		left := own
		for info, err := range entries {
			if err != nil {
				yield(nil, err)
				return
			}
			key := info.Name()
			if info.IsDir() {
				key += "/"
			}
			for len(left) > 0 && left[0] <= key {
				if !yield(Directory(strings.TrimSuffix(left[0], "/")), nil) {
					return
				}
				left = left[1:]
			}
			if slices.Contains(own, key) || slices.Contains(hides, key) {
				continue
			}
			if !yield(info, nil) {
				return
			}
		}
		for _, key := range left {
			if !yield(Directory(strings.TrimSuffix(key, "/")), nil) {
				return
			}
		}
	}
}

// noEntries is the listing of an empty directory.
func noEntries(func(fs.FileInfo, error) bool) {}
