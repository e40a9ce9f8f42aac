package control

import (
	"errors"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/text/unicode/norm"
)

// One name can be written in more than one way: Unicode has a composed and a
// decomposed form of "é", and a listing shows a line feed as a picture of one.
// A file is found however its name is written, the name as it was given first
// (draft-masinter-url-i18n 3.4), and none is made whose name would look the same
// as that of another (section 5 there). Names that can be written in one way
// only, all of ASCII among them, cost no request beyond that of the command.

// lookup tries name and then, while there is nothing of that name, its other
// spellings, and notes where the storage has it. The error of a name that is
// not there in any spelling is the first.
func (s *session) lookup(name string, try func(name string) error) error {
	err := try(name)
	if !errors.Is(err, fs.ErrNotExist) {
		s.located = name
		return err
	}
	dir, base := path.Split(name)
	dir, dirErr := s.locateDirectory(path.Clean(dir))
	if dirErr != nil {
		return dirErr
	}
	for spelling := range s.spellings(dir, base) {
		other := path.Join(dir, spelling)
		if other == name {
			continue
		}
		if otherErr := try(other); !absent(otherErr) {
			s.located = other
			return otherErr
		}
	}
	return err
}

// locateDirectory finds the directory of a file, segment by segment. What is
// not there is spelled as it would be made.
func (s *session) locateDirectory(dir string) (string, error) {
	if dir == "/" || dir == s.workingDirectory() {
		return dir, nil
	}
	above, err := s.locateDirectory(path.Dir(dir))
	if err != nil {
		return "", err
	}
	return s.locate(above, path.Base(dir), func(name string) error {
		_, err := s.login.Storage.StatDir(name)
		return err
	})
}

// spellingForNew is the pathname under which a command makes a file or
// directory: that of the one which is there already in some spelling, as stat
// tells, or the tenant's Unicode form of name.
func (s *session) spellingForNew(name string, stat func(name string) error) (string, error) {
	dir, base := path.Split(name)
	dir, err := s.locateDirectory(path.Clean(dir))
	if err == nil {
		name, err = s.locate(dir, base, stat)
	}
	if err == nil {
		s.located = name
	}
	return name, err
}

// locate is the pathname of base in a directory: the first of its spellings
// that is there, else the one in which it would be made. That one is asked for
// last, because mostly it is the answer whether it is there or not.
func (s *session) locate(dir, base string, stat func(name string) error) (string, error) {
	spellings := slices.Collect(s.spellings(dir, base))
	made := s.form(dir, base)
	last := slices.Index(spellings, made)
	found := -1
	for i, spelling := range spellings {
		if i == last {
			continue
		}
		there, err := exists(stat, path.Join(dir, spelling))
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
		there, err := exists(stat, path.Join(dir, made))
		if err != nil {
			return "", err
		}
		if there {
			found = last
		}
	}
	return path.Join(dir, spellings[found]), nil
}

// exists says whether something is there. What may not be looked at is not: a
// user may upload into a place where S3 does not let the server look.
func exists(stat func(name string) error, name string) (bool, error) {
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
func (s *session) spellings(dir, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := make([]string, 0, 2)
		for _, name := range []string{name, fromLine(name), toLine(name)} {
			for _, form := range s.forms(dir) {
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
func (s *session) forms(dir string) []func(string) string {
	asItIs := func(name string) string { return name }
	if s.normalization(dir) == NormalizeNone {
		return []func(string) string{asItIs}
	}
	return []func(string) string{asItIs, norm.NFC.String, norm.NFD.String}
}

// form is a name as it is made in dir.
func (s *session) form(dir, name string) string {
	switch s.normalization(dir) {
	case NormalizeNFC:
		return norm.NFC.String(name)
	case NormalizeNFD:
		return norm.NFD.String(name)
	}
	return name
}

// normalization is the tenant's, but for a mirror, which gives back the bytes
// that it was given.
func (s *session) normalization(dir string) Normalization {
	if s.encoding(dir).Raw() {
		return NormalizeNone
	}
	return s.login.Tenant.Normalization
}

// CR and LF would end a line of a listing on a data connection, where RFC 3659
// 2.2 asks for another form or for silence. They are shown as the pictures that
// Unicode has of them. In such a name, characters that stand for themselves are
// marked where they could be taken for pictures.
var (
	lineEscaper = strings.NewReplacer(
		pictureMark, pictureMark+pictureMark, pictureCR, pictureMark+pictureCR, pictureLF, pictureMark+pictureLF,
		"\r", pictureCR, "\n", pictureLF)
	lineUnescaper = strings.NewReplacer(
		pictureMark+pictureMark, pictureMark, pictureMark+pictureCR, pictureCR, pictureMark+pictureLF, pictureLF,
		pictureCR, "\r", pictureLF, "\n")
)

const (
	pictureCR   = "\u240d" // SYMBOL FOR CARRIAGE RETURN
	pictureLF   = "\u240a" // SYMBOL FOR LINE FEED
	pictureMark = "\u201b" // the mark that rclone uses for the purpose
)

// toLine is a name as it stands on a line of a listing.
func toLine(name string) string {
	if !strings.ContainsAny(name, "\r\n") {
		return name
	}
	return lineEscaper.Replace(name)
}

// toLines is toLine for each segment of a pathname.
func toLines(pathname string) string {
	segments := strings.Split(pathname, "/")
	for i, segment := range segments {
		segments[i] = toLine(segment)
	}
	return strings.Join(segments, "/")
}

// fromLine is the name that toLine wrote so, or else the name itself.
func fromLine(name string) string {
	if !strings.ContainsAny(name, pictureCR+pictureLF) {
		return name
	}
	if original := lineUnescaper.Replace(name); toLine(original) == name {
		return original
	}
	return name
}
