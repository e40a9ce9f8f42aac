// Package mojibake finds and renames objects whose names were read as UTF-8 although a device wrote them in another
// charset.
//
// Some names in a legacy charset are valid UTF-8 by chance: 目录 in GBK is Ŀ¼ in UTF-8. [Scan] decodes each segment of
// each key in the configured charsets, and returns a [Line] for each segment with such a reading. A line contains
// whether the result is certain ([pathname.Plausible]). [Check] compares lines with the buckets, [Write] and [Read]
// store them in a file that people review and edit, and [Apply] renames.
//
// Apply moves objects one by one, each directly to its final key ([driver.Fs.MoveObject]). It can stop between two
// objects at any time, and the next run continues. It never overwrites: an object whose new key exists is not moved.
package mojibake

import (
	"path"
	"strings"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/pathname"
)

// A Place is a bucket or a part of it that a tenant shows as a directory.
type Place struct {
	Dir   string // as the tenant sees it
	Files *driver.Fs
	// Skip lists directories below Dir whose objects belong to other places or tenants.
	Skip []string
}

// in returns a pathname of the tenant relative to the place. It keeps a trailing slash.
func (p *Place) in(name string) string {
	return "/" + strings.TrimPrefix(strings.TrimPrefix(name, p.Dir), "/")
}

// A Tenant is the tenant whose names are checked.
type Tenant struct {
	Places []Place
	// Encodings returns the encodings that clients may have used for names in a directory.
	Encodings func(dir string) []*pathname.Encoding
	// Normalize returns the Unicode form of a new name.
	Normalize func(name string) string
	// Configured maps directories in the configuration to the keys that name them.
	Configured map[string]string
}

// placeOf returns the place that contains a pathname.
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

// isBelow reports whether a pathname is dir or below it. It ignores a trailing slash.
func isBelow(name, dir string) bool {
	return dir == "/" || strings.HasPrefix(strings.TrimSuffix(name, "/")+"/", dir+"/")
}

// A State determines what Apply does with a name.
type State string

// States of a line.
const (
	Rename State = "rename" // will be renamed
	Unsure State = "unsure" // people may have chosen the name, or there are several readings
	Exists State = "exists" // the new name exists
	Long   State = "long"   // the new key would be too long for S3
	Gone   State = "gone"   // the name no longer exists
)

// A Line is a name and its replacement.
type Line struct {
	State   State
	Charset string // charset of Name
	Objects int64  // number of objects in the directory; 1 for a file
	Path    string // pathname of the tenant; ends with a slash for a directory
	Name    string // replaces the last segment of Path
	Note    string // for people
}

// IsDir reports whether the line is about a directory.
func (l *Line) IsDir() bool { return strings.HasSuffix(l.Path, "/") }

// renames maps paths to new names. Paths of directories end with a slash.
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

// target returns the pathname of a path after all renames of its segments.
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

// within reports whether a parent directory of the path is renamed.
func (r renames) within(name string) bool {
	for dir := path.Dir(strings.TrimSuffix(name, "/")); dir != "/"; dir = path.Dir(dir) {
		if _, ok := r[dir+"/"]; ok {
			return true
		}
	}
	return false
}
