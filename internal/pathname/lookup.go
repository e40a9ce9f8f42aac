package pathname

import (
	"cmp"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/text/unicode/norm"
)

// A Resolver finds names in a storage whichever variant of a name it is given.
//
// A name can have several variants. Unicode has a composed and a decomposed form of
// "é", and a listing shows a line feed as a picture of one. A Resolver looks for
// the name as it was given first (draft-masinter-url-i18n 3.4). It creates no name
// that would look the same as an existing one (section 5 there). A name with one
// variant only, such as every name in ASCII, costs no additional request.
type Resolver struct {
	Rules
	WorkingDirectory string // exists under this name, so no request looks for it
	// StatDir looks for a directory in the storage.
	StatDir func(name string) (fs.FileInfo, error)
	// Choice is the charset that the names of the client have shown, Undecided if they can be in several.
	Choice Choice
	// Read is the charset chosen for the last name that can be in several, Undecided if there was no such name.
	Read Choice

	ambiguous map[string]*segment
}

// Sent gives the resolver a pathname that the client has sent, before the pathname is looked up.
func (r *Resolver) Sent(name Name) {
	if r.Choice == Undecided {
		r.Choice = name.Choice
	}
	if len(name.ambiguous) > 0 && r.ambiguous == nil {
		r.ambiguous = map[string]*segment{}
	}
	maps.Copy(r.ambiguous, name.ambiguous)
}

// Known returns the names that can be in several charsets, for another resolver.
func (r *Resolver) Known() Name { return Name{ambiguous: r.ambiguous} }

// take notes which reading of a segment counts, and whether a file or directory exists under this name. Most names have
// one reading only, and no segment.
func (r *Resolver) take(s *segment, reading int, exists bool) {
	if s == nil {
		return
	}
	r.Read = s.readings[reading].Charset.Name()
	if r.Choice == Undecided {
		r.Choice = s.choice(reading, exists)
	}
}

// Lookup calls try with name and then with its variants, until one exists. It returns
// the pathname that exists, or an empty one and the first error of try if none does.
// Any error but [fs.ErrNotExist] belongs to a name that exists.
//
// A name with a final slash is the name of a directory, and so are its variants.
func (r *Resolver) Lookup(name string, try func(name string) error) (located string, err error) {
	if directory, ok := cutSlash(name); ok {
		located, err = r.Lookup(directory, withSlash(try))
		if located != "" {
			located += "/"
		}
		return located, err
	}
	tried := ""
	if len(r.ambiguous) == 0 {
		if err = try(name); !errors.Is(err, fs.ErrNotExist) {
			return name, err
		}
		tried = name
	}
	dir, missing, dirErr := r.locateDirectory(path.Dir(name))
	if dirErr != nil {
		return "", dirErr
	}
	if missing && tried != "" {
		return "", err
	}
	s := r.ambiguous[name]
	for variant, reading := range r.nameVariants(dir, path.Base(name), s, false) {
		other := path.Join(dir, variant)
		if other == tried {
			continue
		}
		otherErr := try(other)
		if !absent(otherErr) {
			r.take(s, reading, true)
			return other, otherErr
		}
		err = cmp.Or(err, otherErr)
	}
	if s != nil {
		r.take(s, s.created, false)
	}
	return "", err
}

// cutSlash returns a name without its final slash, and false if it has none. The root keeps its slash.
func cutSlash(name string) (string, bool) {
	directory, ok := strings.CutSuffix(name, "/")
	return directory, ok && directory != ""
}

// withSlash gives each name a final slash.
func withSlash(do func(name string) error) func(name string) error {
	return func(name string) error { return do(name + "/") }
}

// maxMisses is how many directories locateDirectory does not find before it asks whether
// the last one exists in the form in which it would be created. Below one that does not exist, nothing
// exists. So a long pathname costs few requests.
const maxMisses = 8

// locateDirectory finds the directory of a file, segment by segment. A segment that
// does not exist gets the form in which it would be created. Missing reports that the
// directory is known not to exist.
func (r *Resolver) locateDirectory(dir string) (located string, missing bool, err error) {
	located = "/"
	if strings.HasPrefix(withTrailingSlash(dir), withTrailingSlash(r.WorkingDirectory)) {
		located = r.WorkingDirectory
	}
	misses := 0
	statDir := func(name string) error {
		misses++
		_, err := r.StatDir(name)
		return err
	}
	sent := located
	for segment := range strings.SplitSeq(strings.Trim(dir[len(located):], "/"), "/") {
		if missing {
			located = path.Join(located, r.NormalForm(located, segment))
			continue
		}
		sent = path.Join(sent, segment)
		var exists bool
		if located, exists, err = r.locate(located, segment, r.ambiguous[sent], false, statDir); err != nil {
			return "", false, err
		}
		if misses >= maxMisses && !exists {
			if exists, err = Exists(statDir, located); err != nil {
				return "", false, err
			}
			missing = !exists
		}
		if exists {
			misses = 0
		}
	}
	return located, missing, nil
}

// ResolveForCreate returns the pathname under which a command creates a file or
// directory. It is that of an existing variant, as stat reports it, or else name in
// the Unicode form of the tenant. A new name with an invisible character is an [InvisibleError].
func (r *Resolver) ResolveForCreate(name string, stat func(name string) error) (string, error) {
	if directory, ok := cutSlash(name); ok {
		located, err := r.ResolveForCreate(directory, withSlash(stat))
		return withTrailingSlash(located), err
	}
	located, err := r.resolveForCreate(name, stat)
	if err != nil || isASCII(located) {
		return located, err
	}
	dir, base := path.Split(located)
	if err = r.allowSegments(path.Clean(dir)); err == nil {
		err = r.allow(base, located, stat)
	}
	return located, err
}

// allowSegments refuses a directory that does not exist and has an invisible character in its pathname.
func (r *Resolver) allowSegments(dir string) error {
	at := "/"
	for segment := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		at = path.Join(at, segment)
		if strings.HasPrefix(withTrailingSlash(r.WorkingDirectory), withTrailingSlash(at)) {
			continue
		}
		err := r.allow(segment, at, func(name string) error { _, err := r.StatDir(name); return err })
		if err != nil {
			return err
		}
	}
	return nil
}

// allow refuses the last segment of a pathname if it has an invisible character and does not exist. The names of a
// mirror are bytes, and all of them are allowed.
func (r *Resolver) allow(segment, name string, stat func(name string) error) error {
	char := invisibleIn(segment)
	if char == 0 || r.EncodingOf(path.Dir(name)).Raw() {
		return nil
	}
	exists, err := Exists(stat, name)
	if err == nil && !exists {
		err = &fs.PathError{Op: "create", Path: name, Err: &InvisibleError{char}}
	}
	return err
}

// resolveForCreate is ResolveForCreate without the check for invisible characters.
func (r *Resolver) resolveForCreate(name string, stat func(name string) error) (string, error) {
	base := path.Base(name)
	dir, missing, err := r.locateDirectory(path.Dir(name))
	if err != nil {
		return "", err
	}
	s := r.ambiguous[name]
	if missing {
		if s != nil {
			r.take(s, s.created, false)
		}
		return path.Join(dir, r.NormalForm(dir, base)), nil
	}
	located, _, err := r.locate(dir, base, s, true, stat)
	return located, err
}

// locate returns the pathname of base in a directory: the first variant that is found to exist,
// or else the normal form. It asks for the normal form last, because that is mostly
// the answer whether it exists or not.
func (r *Resolver) locate(
	dir, base string, s *segment, create bool, stat func(name string) error,
) (located string, exists bool, err error) {
	var variants []string
	var readings []int
	for variant, reading := range r.nameVariants(dir, base, s, create) {
		variants, readings = append(variants, variant), append(readings, reading)
	}
	normal := r.NormalForm(dir, base)
	last := slices.Index(variants, normal)
	found := -1
	for i, variant := range variants {
		if i == last {
			continue
		}
		there, err := Exists(stat, path.Join(dir, variant))
		if err != nil {
			return "", false, err
		}
		if there {
			found = i
			break
		}
	}
	if found < 0 {
		if s != nil {
			r.take(s, s.created, false)
		}
		return path.Join(dir, normal), false, nil
	}
	if last < found {
		there, err := Exists(stat, path.Join(dir, normal))
		if err != nil {
			return "", false, err
		}
		if there {
			found = last
		}
	}
	r.take(s, readings[found], true)
	return path.Join(dir, variants[found]), true, nil
}

// Exists reports whether a name exists, as stat tells. [fs.ErrPermission] counts as no:
// a user may upload to a place that S3 does not let the server read.
func Exists(stat func(name string) error, name string) (bool, error) {
	err := stat(name)
	if absent(err) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	return err == nil, err
}

// absent reports whether an error means that a name does not exist, perhaps because
// no key is so long.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG)
}

// nameVariants yields the ways to write the name of an entry of dir: as it is, and in
// the two forms of Unicode. Each comes with line breaks as they are, unescaped and
// escaped. The normal form is among them. If the bytes of the name have several readings, all readings as they are come
// first. With each variant comes the index of its reading.
func (r *Resolver) nameVariants(dir, name string, s *segment, create bool) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		readings := []Reading{{Name: name}}
		if s != nil {
			readings = s.readings
		}
		skip := func(i int) bool { return create && s != nil && s.notUTF8 && readings[i].Charset == nil }
		seen := make([]string, 0, 2)
		offer := func(variant string, reading int) bool {
			if slices.Contains(seen, variant) {
				return true
			}
			seen = append(seen, variant)
			return yield(variant, reading)
		}
		for i := range readings {
			if len(readings) > 1 && !skip(i) && !offer(readings[i].Name, i) {
				return
			}
		}
		for i := range readings {
			if skip(i) {
				continue
			}
			name := readings[i].Name
			for _, name := range []string{name, unescapeLineBreaks(name), EscapeLineBreaks(name)} {
				for _, form := range r.forms(dir) {
					if !offer(form(name), i) {
						return
					}
				}
			}
		}
	}
}

// forms returns the Unicode forms in which a name in dir may exist.
func (r *Resolver) forms(dir string) []func(string) string {
	asItIs := func(name string) string { return name }
	if r.normalization(dir) == None {
		return []func(string) string{asItIs}
	}
	return []func(string) string{asItIs, norm.NFC.String, norm.NFD.String}
}
