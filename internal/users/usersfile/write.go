package usersfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// The modes of new files, which contain password hashes. If the folder has the setgid bit, its group may read the
// file, so that the server can read it in its configuration folder.
const (
	newMode      = 0o600
	newGroupMode = 0o640
)

// Edit edits a file, which need not exist: it parses the file, calls change, passes the new content to check, and
// replaces the file. Another Edit in the same folder waits until this one is done. The file keeps its mode and
// owner, and readers see either the old or the new content. check gets name unchanged. If another program changes the
// file without the lock, Edit begins again.
func Edit(name string, change func(*Document) error, check func(name string, text []byte) error) error {
	return rewrite(name, edited(name, change, check), os.Rename)
}

// DryRun is like Edit, but does not replace the file. It returns the error that Edit would return.
func DryRun(name string, change func(*Document) error, check func(name string, text []byte) error) error {
	return rewrite(name, edited(name, change, check), func(written, _ string) error { return os.Remove(written) })
}

// edited returns a function that returns the new content of a file that Edit edits.
func edited(
	name string, change func(*Document) error, check func(name string, text []byte) error,
) func(before []byte) ([]byte, error) {
	return func(before []byte) ([]byte, error) {
		d, err := Parse(before)
		if err == nil {
			err = change(d)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		text, err := d.Text()
		if err == nil {
			err = check(name, text)
		}
		return text, err
	}
}

// maxAttempts limits the attempts to change a file that another program keeps changing.
const maxAttempts = 5

// errChanged is returned if another program, such as an editor, has changed the file without the lock.
var errChanged = errors.New("another program changed the file at the same time: try again")

// rewrite replaces the content of a file by the one that edit returns for the current one. finish gets the name of a
// temporary file with the new content and the name of the file to replace.
func rewrite(
	name string, edit func(before []byte) ([]byte, error), finish func(written, name string) error,
) (err error) {
	for range maxAttempts {
		if err = rewriteOnce(name, edit, finish); !errors.Is(err, errChanged) {
			break
		}
	}
	return err
}

// rewriteOnce is like rewrite, but returns errChanged if the file has changed since it was read.
func rewriteOnce(
	name string, edit func(before []byte) ([]byte, error), finish func(written, name string) error,
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
	if err := lockFolder(folder); err != nil {
		return fmt.Errorf("cannot lock the folder of %s: %w", name, err)
	}
	before, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read %s: %w", name, yamlconf.WithoutPath(err))
	}
	text, err := edit(before)
	if err != nil {
		return err
	}
	unchanged := func(written, name string) error {
		now, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !bytes.Equal(now, before) {
			return errChanged
		}
		return finish(written, name)
	}
	if err := replace(target, text, unchanged); err != nil {
		return fmt.Errorf("cannot write %s: %w: nothing has changed", name, yamlconf.WithoutPath(err))
	}
	return folder.Sync()
}

// Writable returns an error if Edit could not replace the file, for example because it is in a Kubernetes Secret.
func Writable(name string) error {
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return fmt.Errorf("cannot find %s: %w: create it with `users: {}`", name, yamlconf.WithoutPath(err))
	}
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read: %w", name, yamlconf.WithoutPath(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file: name one", name)
	}
	if err := mayWrite(target, info); err != nil {
		return fmt.Errorf("it is not writable: %w: use a file that the server can write on every replica", err)
	}
	return nil
}

// replace writes the new content to a temporary file, which finish atomically renames to name.
func replace(name string, text []byte, finish func(written, name string) error) (err error) {
	// Files whose names begin with a dot are ignored in a folder of users.
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
