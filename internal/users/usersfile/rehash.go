package usersfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A Rehash is a new hash of the same password.
type Rehash struct{ User, Old, New string }

// passwordHash is the key of a password hash.
const passwordHash = "password_hash"

var (
	errLink     = errors.New("it is reached by a symbolic link, like the files in a volume of Kubernetes")
	errNoRehash = errors.New("no hash to replace")
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

// WriteHashes replaces hashes at a place, and returns the users whose hash it has replaced. A user whose hash is not
// Old anymore keeps it, and so does a user whom somebody else changes at the same time.
func (s *Store) WriteHashes(ctx context.Context, at Place, changes []Rehash) (users []string, err error) {
	if at.Kind == InFile {
		return writeHashes(at.Name, changes)
	}
	for _, c := range changes {
		switch changed, failed := s.setHash(ctx, s.item(c.User), c, func(*Document) error { return nil }); {
		case failed != nil:
			err = errors.Join(err, failed)
		case changed:
			users = append(users, c.User)
		}
	}
	return users, err
}

// mustChangeKey is the key that lets a user do nothing but change the password.
const mustChangeKey = "must_change_password"

// SetPassword replaces the hash of a user after a change of the password, and removes must_change_password. It returns
// false if the hash is not Old anymore. Nothing else is validated: a user whose other settings are invalid keeps them.
func (s *Store) SetPassword(ctx context.Context, at Place, c Rehash) (changed bool, err error) {
	if at.Kind == InFile {
		d, err := Read(at.Name)
		if err != nil {
			return false, err
		}
		if d.Get(c.User, mustChangeKey) == "" { // keep the formatting of the file
			users, err := writeHashes(at.Name, []Rehash{c})
			return len(users) > 0, err
		}
	}
	return s.setHash(ctx, at, c, func(d *Document) error { return d.Unset(c.User, mustChangeKey) })
}

// setHash replaces the hash of a user, and changes the user in the same write. It returns false if the hash is not Old
// anymore.
func (s *Store) setHash(
	ctx context.Context, at Place, c Rehash, also func(*Document) error,
) (changed bool, err error) {
	change := func(d *Document) error {
		if !d.Has(c.User) || d.Get(c.User, passwordHash) != c.Old {
			return errNoRehash
		}
		if err := d.Set(c.User, c.New, passwordHash); err != nil {
			return err
		}
		return also(d)
	}
	check := func(string, []byte) error { return nil }
	if at.Kind == InState {
		err = s.editItem(ctx, c.User, change, check, false)
	} else {
		err = Edit(at.Name, change, check)
	}
	if errors.Is(err, errNoRehash) {
		return false, nil
	}
	return err == nil, err
}

// writeHashes replaces hashes in a file and returns the users whose hash it has replaced. A user whose hash is not Old
// anymore keeps it. Nothing else in the file changes, not even its formatting.
func writeHashes(name string, changes []Rehash) (users []string, err error) {
	var problems []error
	err = rewrite(name, func(before []byte) ([]byte, error) {
		text := before
		users, problems = nil, nil
		for _, c := range changes {
			next, err := replaceHash(text, c)
			switch {
			case err != nil:
				problems = append(problems, err)
			case next != nil:
				text, users = next, append(users, c.User)
			}
		}
		if len(users) == 0 {
			return nil, errNoRehash
		}
		return text, nil
	}, os.Rename)
	switch {
	case errors.Is(err, errNoRehash):
		err = nil
	case err != nil:
		users = nil
	}
	return users, errors.Join(err, errors.Join(problems...))
}

// replaceHash replaces the hash of a user in the content of a file. It returns nil if the user has another hash.
func replaceHash(text []byte, c Rehash) ([]byte, error) {
	d, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if d.Get(c.User, passwordHash) != c.Old {
		return nil, nil
	}
	settings, err := d.settings(c.User)
	if err != nil {
		return nil, err
	}
	_, node := find(settings, func(key string) bool { return key == passwordHash })
	if err := d.mayDrop(pathOf(c.User, passwordHash), node); err != nil {
		return nil, err
	}
	begin, end := span(text, node)
	next := slices.Concat(text[:begin], []byte(`"`+c.New+`"`), text[end:])
	if !differ(text, next, c) {
		return nil, fmt.Errorf("%s cannot be replaced: write it in quotes, on the line of its key", pathOf(c.User, passwordHash))
	}
	return next, nil
}

// span returns the offsets of a scalar in the text that has been parsed, including its quotes. Both are 0 if the scalar
// is not written as its value on a single line.
func span(text []byte, node *yaml.Node) (begin, end int) {
	line := 1
	for of := range bytes.Lines(text) {
		if line++; line <= node.Line {
			begin += len(of)
			continue
		}
		runes := []rune(string(of))
		column := len(string(runes[:min(node.Column-1, len(runes))]))
		at := bytes.Index(of[column:], []byte(node.Value))
		if at < 0 {
			return 0, 0
		}
		begin += column + at
		end = begin + len(node.Value)
		if quote := text[begin-1]; (quote == '"' || quote == '\'') && end < len(text) && text[end] == quote {
			return begin - 1, end + 1
		}
		return begin, end
	}
	return 0, 0
}

// differ reports whether two contents of a file differ in the hash of a user, and in nothing else.
func differ(before, after []byte, c Rehash) bool {
	old, err := Parse(before)
	if err != nil {
		return false
	}
	next, err := Parse(after)
	if err != nil || next.Get(c.User, passwordHash) != c.New || next.Set(c.User, c.Old, passwordHash) != nil {
		return false
	}
	var values [2]any
	return old.root.Decode(&values[0]) == nil && next.root.Decode(&values[1]) == nil &&
		reflect.DeepEqual(values[0], values[1])
}
