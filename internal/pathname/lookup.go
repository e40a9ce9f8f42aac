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

// A Resolver finds a name in the storage whichever variant of it the client sends.
//
// A name can have several variants. For example, Unicode has a composed and a decomposed form of "é", and a listing
// shows a line feed as a symbol. A Resolver first tries the name as given (draft-masinter-url-i18n section 3.4). It
// does not create a name that looks the same as an existing one (section 5). A name with only one variant, such as
// every ASCII name, costs no additional request.
type Resolver struct {
	Rules
	WorkingDirectory string // known to exist, so no request checks it
	// StatDir checks for a directory in the storage.
	StatDir func(name string) (fs.FileInfo, error)
	// Choice is the charset that the names of the client have proved, or Undecided if several are possible.
	Choice Choice
	// Read is the charset chosen for the last ambiguous name, or Undecided.
	Read Choice

	ambiguous map[string]*segment
}

// Sent tells the resolver about a pathname from the client. Call it before you look up the pathname.
func (r *Resolver) Sent(name Name) {
	if r.Choice == Undecided {
		r.Choice = name.Choice
	}
	if len(name.ambiguous) > 0 && r.ambiguous == nil {
		r.ambiguous = map[string]*segment{}
	}
	maps.Copy(r.ambiguous, name.ambiguous)
}

// Known returns the ambiguous names, for another resolver.
func (r *Resolver) Known() Name { return Name{ambiguous: r.ambiguous} }

// take records which reading of a segment was used, and whether a file or directory with this name exists. Most names
// have only one reading and no segment.
func (r *Resolver) take(s *segment, reading int, exists bool) {
	if s == nil {
		return
	}
	r.Read = s.readings[reading].Charset.Name()
	if r.Choice == Undecided {
		r.Choice = s.choice(reading, exists)
	}
}

// Lookup calls try with name and then with its variants until one exists. It returns the existing pathname or, if
// there is none, an empty one and the first error of try. Any error other than [fs.ErrNotExist] means that the name
// exists.
//
// A name with a trailing slash is the name of a directory, and so are its variants.
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

// cutSlash removes a trailing slash, and reports whether there was one. The root keeps its slash.
func cutSlash(name string) (string, bool) {
	directory, ok := strings.CutSuffix(name, "/")
	return directory, ok && directory != ""
}

// withSlash appends a slash to each name.
func withSlash(do func(name string) error) func(name string) error {
	return func(name string) error { return do(name + "/") }
}

// maxMisses is the number of missing directories after which locateDirectory checks whether the last one exists in the
// form in which it would be created. If it does not exist, neither does anything below it. Therefore a long pathname
// costs few requests.
const maxMisses = 8

// locateDirectory finds the directory of a file, segment by segment. A missing segment gets the form in which it would
// be created. missing reports that the directory is known not to exist.
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

// ResolveForCreate returns the pathname with which a command creates a file or directory. It is the pathname of an
// existing variant, according to stat, or else name in the Unicode form of the tenant. A new name with an invisible
// character is an [InvisibleError].
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

// allowSegments refuses a pathname with a directory that does not exist and has an invisible character in its name.
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

// allow refuses the last segment of a pathname if it has an invisible character and does not exist. Raw names are
// bytes, and all of them are allowed.
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

// locate returns the pathname of base in a directory: the first variant that exists, or else the normal form. It
// checks the normal form last, because that is the usual result whether it exists or not.
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

// Exists reports whether a name exists according to stat. [fs.ErrPermission] counts as missing, because a user may
// upload to a place that the server cannot read in S3.
func Exists(stat func(name string) error, name string) (bool, error) {
	err := stat(name)
	if absent(err) || errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	return err == nil, err
}

// absent reports whether an error means that a name does not exist, possibly because no key can be that long.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG)
}

// nameVariants yields the ways to write the name of an entry of dir: unchanged, and in both Unicode forms, each with
// line breaks unchanged, unescaped and escaped. The normal form is among them. If the bytes of the name have several
// readings, all unchanged readings come first. Each variant comes with the index of its reading.
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
