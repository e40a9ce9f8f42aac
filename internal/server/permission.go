package server

import (
	"context"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/control"
)

// permissions says what a user may do.
type permissions func(config.Permission) bool

// rights is the permissions as the control connection shows them.
func (may permissions) rights() control.Rights {
	return control.Rights{
		List: may(config.List), Read: may(config.Read), Write: may(config.Write),
		Delete: may(config.Delete), Rename: may(config.Rename), Mkdir: may(config.Mkdir),
	}
}

// guarded is a storage where a user does only what the permissions allow; the rest fails with [fs.ErrPermission] before S3 is asked.
//
// To learn what a name stands for (Stat) needs no permission, because every command does: a client that may only upload asks for
// the size of what arrived. To replace a file is to write it. The storage is no embedded field, so that a method which is added to
// it is refused by the compiler here rather than let through.
type guarded struct {
	storage control.Storage
	may     permissions
}

var _ control.Storage = (*guarded)(nil)

// allow returns the error for a user who lacks a permission.
func (g *guarded) allow(p config.Permission, op, name string) error {
	if g.may(p) {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
}

// allowOpen returns the error for a user who may not open a file in the way that flag says.
func (g *guarded) allowOpen(name string, flag int) error {
	access := flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
	if access != os.O_WRONLY {
		if err := g.allow(config.Read, "open", name); err != nil {
			return err
		}
	}
	if access != os.O_RDONLY || flag&(os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0 {
		return g.allow(config.Write, "open", name)
	}
	return nil
}

func (g *guarded) Create(name string) (afero.File, error) {
	if err := g.allow(config.Write, "create", name); err != nil {
		return nil, err
	}
	return g.storage.Create(name)
}

func (g *guarded) Open(name string) (afero.File, error) {
	return g.OpenFile(name, os.O_RDONLY, 0)
}

func (g *guarded) OpenFile(name string, flag int, mode fs.FileMode) (afero.File, error) {
	if err := g.allowOpen(name, flag); err != nil {
		return nil, err
	}
	file, err := g.storage.OpenFile(name, flag, mode)
	if err != nil || g.may(config.List) {
		return file, err
	}
	if info, err := file.Stat(); err == nil && info.IsDir() { // could be listed with Readdir
		_ = file.Close()
		return nil, g.allow(config.List, "open", name)
	}
	return file, nil
}

func (g *guarded) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	if err := g.allowOpen(name, flag); err != nil {
		return nil, err
	}
	return g.storage.OpenAt(name, flag, offset)
}

func (g *guarded) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	if err := g.allow(config.List, "readdir", name); err != nil {
		return nil, err
	}
	return g.storage.ReadDirSeq(name)
}

func (g *guarded) Mkdir(name string, mode fs.FileMode) error {
	if err := g.allow(config.Mkdir, "mkdir", name); err != nil {
		return err
	}
	return g.storage.Mkdir(name, mode)
}

func (g *guarded) MkdirAll(name string, mode fs.FileMode) error {
	if err := g.allow(config.Mkdir, "mkdir", name); err != nil {
		return err
	}
	return g.storage.MkdirAll(name, mode)
}

func (g *guarded) Remove(name string) error {
	if err := g.allow(config.Delete, "remove", name); err != nil {
		return err
	}
	return g.storage.Remove(name)
}

func (g *guarded) RemoveAll(name string) error {
	if err := g.allow(config.Delete, "remove", name); err != nil {
		return err
	}
	return g.storage.RemoveAll(name)
}

func (g *guarded) RemoveFile(name string) error {
	if err := g.allow(config.Delete, "remove", name); err != nil {
		return err
	}
	return g.storage.RemoveFile(name)
}

func (g *guarded) RemoveDir(name string) error {
	if err := g.allow(config.Delete, "remove", name); err != nil {
		return err
	}
	return g.storage.RemoveDir(name)
}

func (g *guarded) Rename(oldname, newname string) error {
	if err := g.allow(config.Rename, "rename", oldname); err != nil {
		return err
	}
	return g.storage.Rename(oldname, newname)
}

func (g *guarded) Copy(ctx context.Context, oldname, newname string) error {
	if err := g.allow(config.Read, "copy", oldname); err != nil {
		return err
	}
	if err := g.allow(config.Write, "copy", newname); err != nil {
		return err
	}
	return g.storage.Copy(ctx, oldname, newname)
}

func (g *guarded) Chmod(name string, mode fs.FileMode) error {
	if err := g.allow(config.Write, "chmod", name); err != nil {
		return err
	}
	return g.storage.Chmod(name, mode)
}

func (g *guarded) Chown(name string, uid, gid int) error {
	if err := g.allow(config.Write, "chown", name); err != nil {
		return err
	}
	return g.storage.Chown(name, uid, gid)
}

func (g *guarded) Chtimes(name string, atime, mtime time.Time) error {
	if err := g.allow(config.Write, "chtimes", name); err != nil {
		return err
	}
	return g.storage.Chtimes(name, atime, mtime)
}

func (g *guarded) Stat(name string) (fs.FileInfo, error)     { return g.storage.Stat(name) }
func (g *guarded) StatFile(name string) (fs.FileInfo, error) { return g.storage.StatFile(name) }
func (g *guarded) StatDir(name string) (fs.FileInfo, error)  { return g.storage.StatDir(name) }
func (g *guarded) Name() string                              { return g.storage.Name() }
