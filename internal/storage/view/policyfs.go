package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/afero"
)

// policyFS lets a user do only what the policy allows. Everything else fails with [fs.ErrPermission] before S3 is
// asked.
//
// A user who may neither read a file nor list its directory must not learn whether the file exists. Size and time
// (Stat) would tell it, and so would resuming an upload, setting the time, or a rename. The user of a drop box is
// such a user. Clients ask for the size of a file that they have uploaded, and set its time and its final name. So
// the session remembers the files that it has stored itself. For such a user each directory exists, if the user may
// do anything in it or below. A directory of S3 begins with its first file.
//
// To replace a file is to write it. The storage is not embedded: the compiler shall refuse a method that is added to
// the interface and not here.
type policyFS struct {
	storage ObjectStorage
	policy  Policy
	form    func(name string) string // the Unicode form in which names are created

	*Unseen
}

// Unseen is what a session remembers of files that its user cannot see. The zero value is ready.
type Unseen struct {
	mu     sync.Mutex
	stored []string // files that the session has stored, canonical, the last maxStored of them
	// by canonical name, the size in bytes that the session has reported of an interrupted upload
	reported map[string]int64
}

var _ ObjectStorage = (*policyFS)(nil)

// maxStored is how many unseen files a session remembers. Clients ask about a file right after they have stored it.
const maxStored = 100

// NewPolicyFS puts a policy before a storage. The function form gives a name the Unicode form in which it is created.
// What one command may know of unseen files, another one of the same session may too.
func NewPolicyFS(storage ObjectStorage, policy Policy, form func(name string) string, unseen *Unseen) ObjectStorage {
	return &policyFS{storage: storage, policy: policy, form: form, Unseen: unseen}
}

// errPolicy tells the log apart what the configuration refuses and what S3 refuses.
var errPolicy = fmt.Errorf("%w by the permissions in the configuration", fs.ErrPermission)

// denied is the error for an operation that the policy refuses.
func denied(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: errPolicy}
}

// allow returns an error unless the user has the right.
func allow(right bool, op, name string) error {
	if !right {
		return denied(op, name)
	}
	return nil
}

// canSee reports whether the user may know what exists under a name.
func (p *policyFS) canSee(name string) bool {
	name = Canonical(name)
	rights := p.policy.At(name)
	return rights.Read || rights.List || p.policy.At(path.Dir(name)).List || p.hasStored(name)
}

func (p *policyFS) hasStored(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.stored, name)
}

// rememberStored remembers a file that the session has stored, or has moved after it stored it.
func (p *policyFS) rememberStored(name string) {
	if p.canSee(name) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored = append(p.stored[max(0, len(p.stored)-maxStored+1):], Canonical(name))
}

// allowOpen returns an error unless the user may open a file with this flag and offset.
func (p *policyFS) allowOpen(name string, flag int, offset int64) error {
	rights := p.policy.At(name)
	access := flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
	if access != os.O_WRONLY && !rights.Read {
		return denied("open", name)
	}
	if writes(flag) && (!rights.Write || offset > 0 && !p.canSee(name) && !p.resumesAt(name, offset)) {
		return denied("open", name)
	}
	return nil
}

// resumesAt reports whether the session has told the user that an own interrupted upload resumes at this offset. It
// tells nothing about a file of that name.
func (p *policyFS) resumesAt(name string, offset int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return offset == p.reported[Canonical(name)]
}

// hasReported reports whether the session has told the user of an own interrupted upload of this name.
func (p *policyFS) hasReported(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.reported[Canonical(name)]
	return ok
}

// writes reports whether an open with this flag may change the file.
func writes(flag int) bool {
	return flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0
}

func (p *policyFS) Create(name string) (afero.File, error) {
	if err := allow(p.policy.At(name).Write, "create", name); err != nil {
		return nil, err
	}
	file, err := p.storage.Create(name)
	if err != nil {
		return nil, err
	}
	return p.trackUpload(file, name, os.O_RDWR), nil
}

func (p *policyFS) Open(name string) (afero.File, error) {
	return p.OpenFile(name, os.O_RDONLY, 0)
}

func (p *policyFS) OpenFile(name string, flag int, mode fs.FileMode) (afero.File, error) {
	if err := p.allowOpen(name, flag, 0); err != nil {
		return nil, err
	}
	file, err := p.storage.OpenFile(name, flag, mode)
	switch {
	case err != nil:
		return nil, err
	case writes(flag):
		return p.trackUpload(file, name, flag), nil
	case p.policy.At(name).List:
		return file, nil
	}
	if info, err := file.Stat(); err == nil && info.IsDir() { // could be listed with Readdir
		_ = file.Close()
		return nil, denied("open", name)
	}
	return file, nil
}

func (p *policyFS) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	if err := p.allowOpen(name, flag, offset); err != nil {
		return nil, err
	}
	file, err := p.storage.OpenAt(name, flag, offset)
	if err != nil || !writes(flag) {
		return file, err
	}
	return p.trackUpload(file, name, flag), nil
}

// PendingUpload describes an own interrupted upload of the user. A user who sees no names may see and resume these.
func (p *policyFS) PendingUpload(name string) (fs.FileInfo, error) {
	if !p.policy.At(name).Write {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	info, err := p.storage.PendingUpload(name)
	if err == nil && !p.canSee(name) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.reported) >= maxStored || p.reported == nil {
			p.reported = map[string]int64{}
		}
		p.reported[Canonical(name)] = info.Size()
	}
	return info, err
}

// URI needs no right, because it is made of the name alone.
func (p *policyFS) URI(name string) string { return p.storage.URI(name) }

// Presign needs the right to read, because the link lets others read the file.
func (p *policyFS) Presign(ctx context.Context, name string, valid time.Duration) (string, error) {
	if err := allow(p.policy.At(name).Read, "presign", name); err != nil {
		return "", err
	}
	return p.storage.Presign(ctx, name, valid)
}

// trackUpload remembers a file as stored when it is closed, if the user cannot see it otherwise. A file to which the
// session has appended may hold bytes of others, and its size would tell how many. Only an own interrupted upload
// holds none.
func (p *policyFS) trackUpload(file afero.File, name string, flag int) afero.File {
	if flag&(os.O_WRONLY|os.O_RDWR) == 0 || p.canSee(name) || flag&os.O_APPEND != 0 && !p.hasReported(name) {
		return file
	}
	return &unseenFile{Upload: file.(Upload), stored: func() { p.rememberStored(name) }}
}

// An unseenFile is open for writing by a user who sees no names.
type unseenFile struct {
	Upload
	stored func()
}

func (f *unseenFile) Close() error {
	err := f.Upload.Close()
	if err == nil {
		f.stored()
	}
	return err
}

// ReadDirSeq reports a missing directory only to a user who may know of it.
func (p *policyFS) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	if p.policy.At(name).List {
		return p.storage.ReadDirSeq(name)
	}
	if p.canSee(name) {
		if _, err := p.storage.StatDir(name); err != nil {
			return nil, err
		}
	}
	return nil, denied("readdir", name)
}

// Mkdir succeeds where something exists that the user cannot see, because each directory exists for such a user.
func (p *policyFS) Mkdir(name string, mode fs.FileMode) error {
	if err := allow(p.policy.At(name).Mkdir, "mkdir", name); err != nil {
		return err
	}
	err := p.storage.Mkdir(name, mode)
	if errors.Is(err, fs.ErrExist) && !p.canSee(name) {
		return nil
	}
	return err
}

// MkdirAll makes parents too, so each of them must exist or the user must have the right to make it.
func (p *policyFS) MkdirAll(name string, mode fs.FileMode) error {
	if err := allow(p.policy.At(name).Mkdir, "mkdir", name); err != nil {
		return err
	}
	for dir := path.Dir(Canonical(name)); dir != "/"; dir = path.Dir(dir) {
		if p.policy.At(dir).Mkdir {
			continue
		}
		if _, err := p.StatDir(dir); err != nil {
			return denied("mkdir", name)
		}
	}
	err := p.storage.MkdirAll(name, mode)
	if errors.Is(err, syscall.ENOTDIR) && !p.canSee(name) {
		return nil
	}
	return err
}

func (p *policyFS) Remove(name string) error {
	if err := allow(p.policy.At(name).Delete, "remove", name); err != nil {
		return err
	}
	return p.storage.Remove(name)
}

// RemoveAll needs the right for everything that may be below.
func (p *policyFS) RemoveAll(name string) error {
	least, _ := p.policy.Bounds(name)
	if err := allow(least.Delete, "remove", name); err != nil {
		return err
	}
	return p.storage.RemoveAll(name)
}

func (p *policyFS) RemoveFile(name string) error {
	if err := allow(p.policy.At(name).Delete, "remove", name); err != nil {
		return err
	}
	return p.storage.RemoveFile(name)
}

func (p *policyFS) RemoveDir(name string) error {
	if err := allow(p.policy.At(name).Delete, "remove", name); err != nil {
		return err
	}
	return p.storage.RemoveDir(name)
}

func (p *policyFS) Rename(oldname, newname string) error {
	if err := p.allowMove("rename", oldname, newname, mayMove); err != nil {
		return err
	}
	unseen := p.hasStored(Canonical(oldname))
	err := p.storage.Rename(oldname, newname)
	if err == nil && unseen {
		p.rememberStored(newname)
	}
	return err
}

// allowMove asks permitted about the rights below oldname, and about the least and the most rights below newname.
//
// A directory needs more than a file. The reply tells whether its new name was free, so the user must see what has
// that name. And it must not go from where the user cannot list names to where the user can.
func (p *policyFS) allowMove(op, oldname, newname string, permitted func(from, to, most Rights) bool) error {
	if !p.canSee(oldname) {
		return denied(op, oldname)
	}
	from, _ := p.policy.Bounds(oldname)
	to, most := p.policy.Bounds(newname)
	if permitted(from, to, most) && p.canSee(newname) && (from.List || !most.List) {
		return nil
	}
	from, to = p.policy.At(oldname), p.policy.At(newname)
	if !permitted(from, to, to) {
		return denied(op, oldname)
	}
	// Only a directory makes it fail.
	_, err := p.storage.StatDir(oldname)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil:
		return denied(op, oldname)
	}
	return err
}

// mayMove reports whether a user may move a file with the rights from to a place with the rights to. A move must not
// make a file readable or deletable that was not, so most has the most rights at the new place.
func mayMove(from, to, most Rights) bool {
	return from.Rename && to.Write && (from.Read || !most.Read) && (from.Delete || !most.Delete)
}

func (p *policyFS) Copy(ctx context.Context, oldname, newname string) error {
	if err := p.allowMove("copy", oldname, newname, mayCopy); err != nil {
		return err
	}
	return p.storage.Copy(ctx, oldname, newname)
}

// mayCopy reports whether a user may copy a file with the rights from to a place with the rights to.
func mayCopy(from, to, _ Rights) bool { return from.Read && to.Write }

func (p *policyFS) Hash(
	ctx context.Context, name, algorithm string, from, to int64,
) (sum []byte, end int64, err error) {
	if err := allow(p.policy.At(name).Read, "hash", name); err != nil {
		return nil, 0, err
	}
	return p.storage.Hash(ctx, name, algorithm, from, to)
}

func (p *policyFS) Chmod(name string, mode fs.FileMode) error {
	if err := allow(p.policy.At(name).Write && p.canSee(name), "chmod", name); err != nil {
		return err
	}
	return p.storage.Chmod(name, mode)
}

func (p *policyFS) Chown(name string, uid, gid int) error {
	if err := allow(p.policy.At(name).Write && p.canSee(name), "chown", name); err != nil {
		return err
	}
	return p.storage.Chown(name, uid, gid)
}

func (p *policyFS) Chtimes(name string, atime, mtime time.Time) error {
	if err := allow(p.policy.At(name).Write && p.canSee(name), "chtimes", name); err != nil {
		return err
	}
	return p.storage.Chtimes(name, atime, mtime)
}

func (p *policyFS) Stat(name string) (fs.FileInfo, error) {
	if !p.canSee(name) {
		return nil, denied("stat", name)
	}
	return p.storage.Stat(name)
}

func (p *policyFS) StatFile(name string) (fs.FileInfo, error) {
	if !p.canSee(name) {
		return nil, denied("stat", name)
	}
	return p.storage.StatFile(name)
}

// StatDir is what CWD asks.
func (p *policyFS) StatDir(name string) (fs.FileInfo, error) {
	if p.canSee(name) {
		return p.storage.StatDir(name)
	}
	if _, most := p.policy.Bounds(name); most == (Rights{}) {
		return nil, denied("stat", name)
	}
	// the form in which it would be created, and a name that nothing can have
	if p.form(name) != name || p.storage.URI(name) == "" {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return Directory(path.Base(Canonical(name))), nil
}

func (p *policyFS) Name() string { return p.storage.Name() }
