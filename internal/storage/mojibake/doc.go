// Package mojibake finds names in buckets that were read as UTF-8 although a device wrote them in another charset, and
// renames them.
//
// Some names in a charset from before UTF-8 are valid UTF-8 by chance: 目录 in GBK is Ŀ¼ in UTF-8. [Scan] reads each
// segment of each key in the configured charsets, and returns a [Line] for each that has such a reading. A line says
// whether the name is certain ([pathname.Plausible]). [Check] compares lines with the buckets, [Write] and [Read] keep
// them in a file that people review and edit, and [Apply] renames.
//
// Apply moves objects one by one, each to the key that it has in the end ([driver.Fs.MoveObject]). Between two of them
// it can stop at any time, and the next run continues. It replaces nothing: an object whose new key exists stays.
package mojibake

import (
	"path"
	"strings"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/pathname"
)

// A Place is a bucket, or a part of one, that a tenant shows as a directory.
type Place struct {
	Dir   string // as the tenant sees it
	Files *driver.Fs
	// Skip has the directories of the tenant below Dir whose objects belong to other places or tenants.
	Skip []string
}

// in returns the name that a pathname of the tenant has in the place. A slash at its end stays.
func (p *Place) in(name string) string {
	return "/" + strings.TrimPrefix(strings.TrimPrefix(name, p.Dir), "/")
}

// A Tenant is the tenant whose names are checked.
type Tenant struct {
	Places []Place
	// Encodings returns the encodings in which clients may have written the names in a directory.
	Encodings func(dir string) []*pathname.Encoding
	// Normalize returns the Unicode form of a new name.
	Normalize func(name string) string
	// Configured has the directories that the configuration names, with the key that names them.
	Configured map[string]string
}

// placeOf returns the place that shows a pathname.
func (t *Tenant) placeOf(name string) *Place {
	var found *Place
	for i := range t.Places {
		p := &t.Places[i]
		if isBelow(name, p.Dir) && (found == nil || len(p.Dir) > len(found.Dir)) {
			found = p
		}
	}
	return found
}

// isBelow reports whether a pathname is a directory or below it. A slash at its end does not count.
func isBelow(name, dir string) bool {
	return dir == "/" || strings.HasPrefix(strings.TrimSuffix(name, "/")+"/", dir+"/")
}

// A State says what Apply does with a name.
type State string

// The states.
const (
	Rename State = "rename" // is renamed
	Unsure State = "unsure" // people may have chosen the name as it is, or there are several readings
	Exists State = "exists" // something has the new name
	Long   State = "long"   // the new key would be longer than S3 stores
	Gone   State = "gone"   // the name does not exist any more
)

// A Line is a name, and what it should be.
type Line struct {
	State   State
	Charset string // in which Name was read
	Objects int64  // in the directory; 1 for a file
	Path    string // of the tenant. A directory has a slash at the end
	Name    string // that replaces the last segment of Path
	Note    string // for people
}

// IsDir reports whether the line is about a directory.
func (l *Line) IsDir() bool { return strings.HasSuffix(l.Path, "/") }

// renames has the new names of paths. Paths of directories end with a slash.
type renames map[string]string

// newRenames returns the renames of lines.
func newRenames(lines []Line) renames {
	r := renames{}
	for _, l := range lines {
		if l.State == Rename {
			r[l.Path] = l.Name
		}
	}
	return r
}

// target returns the pathname that a path has after all renames of its segments.
func (r renames) target(name string) string {
	dir, isDir := strings.CutSuffix(name, "/")
	old, renamed := "/", "/"
	segments := strings.Split(strings.TrimPrefix(dir, "/"), "/")
	for i, segment := range segments {
		old = path.Join(old, segment)
		key := old
		if isDir || i < len(segments)-1 {
			key += "/"
		}
		if to, ok := r[key]; ok {
			segment = to
		}
		renamed = path.Join(renamed, segment)
	}
	if isDir {
		renamed += "/"
	}
	return renamed
}

// within reports whether a directory above the path is renamed.
func (r renames) within(name string) bool {
	for dir := path.Dir(strings.TrimSuffix(name, "/")); dir != "/"; dir = path.Dir(dir) {
		if _, ok := r[dir+"/"]; ok {
			return true
		}
	}
	return false
}
