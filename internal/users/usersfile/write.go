package usersfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// The modes of a file that there was not, which holds password hashes. Where the folder gives its group to new files
// (setgid), that group may read them, as the server does in the folder of its configuration.
const (
	newMode      = 0o600
	newGroupMode = 0o640
)

// Change reads a file, which need not exist, lets change do its work, asks check whether the text may be written, and
// writes it. Another Change of a file in the same folder waits meanwhile. The file keeps its mode and its owner, and is
// the old one or the new one at each moment. check gets the name under which the file was given.
func Change(name string, change func(*Document) error, check func(name string, text []byte) error) error {
	return apply(name, change, check, os.Rename)
}

// Try does what Change does, but for the end: the file stays as it is. An error is the one that Change would return.
func Try(name string, change func(*Document) error, check func(name string, text []byte) error) error {
	return apply(name, change, check, func(written, _ string) error { return os.Remove(written) })
}

// apply is Change. finish gets the name of a new file with the text, and the name of the file to replace.
func apply(
	name string, change func(*Document) error, check func(name string, text []byte) error,
	finish func(written, name string) error,
) error {
	target, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = name, nil
	}
	if err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(target))
	if err != nil {
		return fmt.Errorf("cannot open the folder of %s: %w: create it first", name, yamlconf.WithoutPath(err))
	}
	defer folder.Close()
	if err := lock(folder); err != nil {
		return fmt.Errorf("cannot lock the folder of %s: %w", name, err)
	}
	before, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read %s: %w", name, yamlconf.WithoutPath(err))
	}
	d, err := Parse(before)
	if err == nil {
		err = change(d)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	text, err := d.Text()
	if err == nil {
		err = check(name, text)
	}
	if err != nil {
		return err
	}
	if err := replace(target, text, finish); err != nil {
		return fmt.Errorf("cannot write %s: %w: nothing has changed", name, yamlconf.WithoutPath(err))
	}
	return folder.Sync()
}

// Writable returns an error if Change could not write a file of users, such as one in a Secret of Kubernetes.
func Writable(name string) error {
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return fmt.Errorf("%s cannot be found: %w: write `users: {}` there", name, yamlconf.WithoutPath(err))
	}
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w", name, yamlconf.WithoutPath(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file: name one", name)
	}
	if err := mayWrite(target, info); err != nil {
		return fmt.Errorf("it cannot be written: %w: name a file that the user of the server may write, at each replica", err)
	}
	return nil
}

// replace writes another content of a file into a new one, which finish puts in its place at once for all who read it.
func replace(name string, text []byte, finish func(written, name string) error) (err error) {
	// A name that begins with a dot is none of a folder of users.
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	mode := fs.FileMode(newMode)
	if folder, err := os.Stat(filepath.Dir(name)); err == nil && folder.Mode()&fs.ModeSetgid != 0 {
		mode = newGroupMode
	}
	info, err := os.Stat(name)
	switch {
	case err == nil:
		mode = info.Mode().Perm()
		if err := keepOwner(f, info); err != nil {
			return fmt.Errorf("keep the owner of the file: %w: run the command as the owner or as root", err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return finish(f.Name(), name)
}
