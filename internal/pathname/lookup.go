package pathname

import (
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"syscall"

	"golang.org/x/text/unicode/norm"
)

// One name can be written in more than one way: Unicode has a composed and a
// decomposed form of "é", and a listing shows a line feed as a picture of one.
// A file is found however its name is written, the name as it was given first
// (draft-masinter-url-i18n 3.4), and none is made whose name would look the same
// as that of another (section 5 there). Names that can be written in one way
// only, all of ASCII among them, cost no request beyond that of the command.

// A Resolver finds names in a storage however they are written.
type Resolver struct {
	Rules
	WorkingDirectory string // it is there as it is written
	// StatDir looks for a directory in the storage.
	StatDir func(name string) (fs.FileInfo, error)
}

// Lookup tries name and then, while there is nothing of that name, its other
// spellings. It returns where the storage has it, empty where it is not there; the
// error of a name that is not there in any spelling is the first.
func (r *Resolver) Lookup(name string, try func(name string) error) (located string, err error) {
	err = try(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return name, err
	}
	dir, base := path.Split(name)
	dir, dirErr := r.locateDirectory(path.Clean(dir))
	if dirErr != nil {
		return "", dirErr
	}
	for spelling := range r.spellings(dir, base) {
		other := path.Join(dir, spelling)
		if other == name {
			continue
		}
		if otherErr := try(other); !absent(otherErr) {
			return other, otherErr
		}
	}
	return "", err
}

// locateDirectory finds the directory of a file, segment by segment. What is
// not there is spelled as it would be made.
func (r *Resolver) locateDirectory(dir string) (string, error) {
	if dir == "/" || dir == r.WorkingDirectory {
		return dir, nil
	}
	above, err := r.locateDirectory(path.Dir(dir))
	if err != nil {
		return "", err
	}
	return r.locate(above, path.Base(dir), func(name string) error {
		_, err := r.StatDir(name)
		return err
	})
}

// ForCreate is the pathname under which a command makes a file or
// directory: that of the one which is there already in some spelling, as stat
// tells, or the tenant's Unicode form of name.
func (r *Resolver) ForCreate(name string, stat func(name string) error) (string, error) {
	dir, base := path.Split(name)
	dir, err := r.locateDirectory(path.Clean(dir))
	if err != nil {
		return "", err
	}
	return r.locate(dir, base, stat)
}

// locate is the pathname of base in a directory: the first of its spellings
// that is there, else the one in which it would be made. That one is asked for
// last, because mostly it is the answer whether it is there or not.
func (r *Resolver) locate(dir, base string, stat func(name string) error) (string, error) {
	spellings := slices.Collect(r.spellings(dir, base))
	made := r.NormalForm(dir, base)
	last := slices.Index(spellings, made)
	found := -1
	for i, spelling := range spellings {
		if i == last {
			continue
		}
		there, err := Exists(stat, path.Join(dir, spelling))
		if err != nil {
			return "", err
		}
		if there {
			found = i
			break
		}
	}
	if found < 0 {
		return path.Join(dir, made), nil
	}
	if last < found {
		there, err := Exists(stat, path.Join(dir, made))
		if err != nil {
			return "", err
		}
		if there {
			found = last
		}
	}
	return path.Join(dir, spellings[found]), nil
}

// Exists says whether something is there. What may not be looked at is not: a
// user may upload into a place where S3 does not let the server look.
func Exists(stat func(name string) error, name string) (bool, error) {
	err := stat(name)
	if absent(err) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	return err == nil, err
}

// absent says whether an error means that nothing has a spelling, perhaps
// because no key is so long.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG)
}

// spellings are the ways in which the name of an entry of dir can be written:
// as it is, in the two forms of Unicode, and so for a name that stands in
// listings for one with line ends. The form for new names is among them.
func (r *Resolver) spellings(dir, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := make([]string, 0, 2)
		for _, name := range []string{name, unescapeLineBreaks(name), EscapeLineBreaks(name)} {
			for _, form := range r.forms(dir) {
				spelling := form(name)
				if slices.Contains(seen, spelling) {
					continue
				}
				if seen = append(seen, spelling); !yield(spelling) {
					return
				}
			}
		}
	}
}

// forms are the forms of Unicode in which a name in dir is looked for.
func (r *Resolver) forms(dir string) []func(string) string {
	asItIs := func(name string) string { return name }
	if r.normalization(dir) == None {
		return []func(string) string{asItIs}
	}
	return []func(string) string{asItIs, norm.NFC.String, norm.NFD.String}
}
