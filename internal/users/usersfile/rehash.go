package usersfile

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A Rehash is a new hash of the same password.
type Rehash struct{ User, Old, New string }

// passwordHash is the key of a password hash.
const passwordHash = "password_hash"

var (
	errLink       = errors.New("it is reached by a symbolic link, like the files in a volume of Kubernetes")
	errNoRehash   = errors.New("no hash to replace")
	errOtherValue = errors.New("the new file would have other settings than the old one")
)

// MayRehash returns an error if the server must not write new hashes to a file on its own: if it could not, or if the
// file is reached by a symbolic link, because then a Secret, a ConfigMap or another program provides it.
func MayRehash(name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return yamlconf.WithoutPath(err)
	}
	target, err := filepath.EvalSymlinks(name)
	if err == nil {
		target, err = filepath.Abs(target)
	}
	if err != nil {
		return yamlconf.WithoutPath(err)
	}
	// The folders in a volume of Kubernetes are called ..data and ..2026_11_29_10_00_00.1234.
	if info.Mode()&os.ModeSymlink != 0 || strings.Contains(filepath.ToSlash(target), "/..") {
		return errLink
	}
	return Writable(name)
}

// WriteHashes replaces hashes in a file and returns the users whose hash it has replaced. A user whose hash is not Old
// anymore keeps it. Nothing else in the file changes.
func WriteHashes(name string, changes []Rehash) (users []string, err error) {
	var before any
	var problems []error
	change := func(d *Document) error {
		users, problems = nil, nil
		if err := d.root.Decode(&before); err != nil {
			return err
		}
		for _, c := range changes {
			if d.Get(c.User, passwordHash) != c.Old {
				continue
			}
			if err := d.Set(c.User, c.New, passwordHash); err != nil {
				problems = append(problems, err)
				continue
			}
			users = append(users, c.User)
		}
		if len(users) == 0 {
			return errNoRehash
		}
		return nil
	}
	check := func(_ string, text []byte) error {
		d, err := Parse(text)
		if err != nil {
			return err
		}
		for _, c := range changes {
			if d.Get(c.User, passwordHash) == c.New {
				err = errors.Join(err, d.Set(c.User, c.Old, passwordHash))
			}
		}
		var after any
		if err := errors.Join(err, d.root.Decode(&after)); err != nil {
			return err
		}
		if !reflect.DeepEqual(before, after) {
			return errOtherValue
		}
		return nil
	}
	if err := Edit(name, change, check); err != nil {
		if errors.Is(err, errNoRehash) {
			return nil, errors.Join(problems...)
		}
		return nil, err
	}
	return users, errors.Join(problems...)
}
