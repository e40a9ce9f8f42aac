package view

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/pathname"
)

// A View is the storage as one login sees it.
type View struct {
	Mounts    Mounts
	Policy    Policy
	Form      func(name string) string // converts a name to the Unicode form in which it is created
	Printable bool                     // refuse new names with control characters (Unicode category Cc)
	// Deny matches names of files that are not stored.
	Deny Names
	// MaxSize is the maximum size of a stored file in bytes, or 0.
	MaxSize     int64
	Directories *Directories // directories that exist for the sessions of the user

	Owner         string         // owner of interrupted uploads
	EndingUploads *EndingUploads // nil if interrupted uploads are not kept

	User   string // user name in events
	Events Sink   // nil if there is no receiver
	Skip   Names  // files without events

	Past Past // older versions

	unseen unseen
}

// Files are the files of a login for one command. Each operation resolves the name to a target, checks the rights,
// calls the store and passes a note, in this order. Therefore a user without the right gets the same result whatever
// exists with this name.
type Files struct {
	*View
	// Announced is the number of bytes that the client announced, if any. An upload that is too large is refused
	// before its first byte.
	Announced int64
	// SHA256 is the hash that the client has promised for the uploaded file, or nil. A file with another hash is not
	// stored.
	SHA256 *[sha256.Size]byte

	ctx  context.Context
	note func(Note)
}

// For returns the files for a command. When ctx ends, so do their operations and transfers. note receives the
// operations of the command; it is called once for each spelling of a name that the command tries. It may be nil.
func (v *View) For(ctx context.Context, note func(Note)) *Files {
	if note == nil {
		note = func(Note) {}
	}
	return &Files{View: v, ctx: ctx, note: note}
}

// A target is the result of resolving a name for the user of a view.
type target struct {
	name      string // absolute and clean, as the user sees it
	today     string // name without the moment of an older version
	canonical string // today, in the form that rules compare
	rights    Rights // rights of the user
	mount     *Mount
	inner     string // name within the mount, with a trailing slash if it must be a directory
	sent      string // name within the mount that the user sent if inner is a name from Mount.Key, otherwise empty
	fixed     bool   // leads to a mount, so it cannot be moved
	past      bool   // an older version, which cannot be changed
}

// resolve returns the target of a name. It sends no request. A name with a trailing slash means a directory, and the
// store never treats it as a file.
func (v *View) resolve(name string) *target {
	t := &target{name: path.Clean("/" + name)}
	today, moment, past := v.Past.find(t.name)
	t.today, t.canonical = today, norm.NFC.String(today)
	t.rights = v.rightsAt(t.name, t.canonical, past)
	t.mount, t.inner = v.Mounts.find(today)
	t.fixed = v.Mounts.leadTo(today)
	if past {
		v.moveBack(t, moment)
	} else if object := v.unseen.object(t.canonical); object != "" {
		t.inner = object
	}
	if strings.HasSuffix(name, "/") && t.inner != "/" {
		t.inner += "/"
	}
	return t
}

// Rights returns the rights of the user for a pathname. A directory that leads to a mount cannot be deleted or
// renamed.
func (v *View) Rights(name string) Rights {
	name = path.Clean("/" + name)
	today, _, past := v.Past.find(name)
	rights := v.rightsAt(name, today, past)
	if v.Mounts.leadTo(today) || past && today == "/" {
		rights.Delete, rights.Rename = false, false
	}
	return rights
}

// Fixed reports whether a pathname leads to a mount, so that it cannot be moved.
func (v *View) Fixed(name string) bool {
	today, _, past := v.Past.find(path.Clean("/" + name))
	return !past && v.Mounts.leadTo(today)
}

// URI returns the s3 URI for a pathname, or "" for a name that no object can have. It needs no permission, because it
// depends on the name alone.
func (v *View) URI(name string) string {
	return v.resolve(name).uri()
}

func (t *target) uri() string { return t.mount.Store.URI(t.inner) }

// fail returns an error of an operation on the target.
func (t *target) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: t.name, Err: err}
}

// stays reports whether the target is a directory that cannot be moved, replaced or removed.
func (t *target) stays() bool { return t.fixed || t.name == "/" }

// ErrFixed reports an attempt to change the root or a directory that leads to a mount.
var ErrFixed = fmt.Errorf("%w: the directory is the root, or leads to a mount", fs.ErrPermission)

// errPolicy distinguishes in the log what the configuration refused from what S3 refused.
var errPolicy = fmt.Errorf("%w by the permissions in the configuration", fs.ErrPermission)

// deniedError returns the error of an operation that the policy refuses.
func (t *target) deniedError(op string) error { return t.fail(op, errPolicy) }

// replacePath replaces the path in an error of the store by the path that the user sees.
func (t *target) replacePath(err error) error {
	if err == nil || t.inner == t.name {
		return err
	}
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return t.fail(of.Op, of.Err)
	}
	return err
}

// canSee reports whether the user may know what exists at a target.
func (v *View) canSee(t *target) bool {
	if t.past && !v.Past.mayShow(t.name) {
		return false
	}
	return t.rights.Read || t.rights.List || v.Policy.At(path.Dir(t.canonical)).List ||
		!t.past && v.unseen.hasStored(t.canonical)
}

// printable refuses a new name with a control character. Existing files with such names can be read, renamed and
// removed. It checks the whole pathname, because storing a file also creates its directories.
func (v *View) printable(op string, t *target) error {
	if v.Printable && strings.ContainsFunc(t.name, unicode.IsControl) {
		return t.fail(op, pathname.ErrInvisible)
	}
	return nil
}

// endingKey returns the key of a file in EndingUploads, which includes the owner.
func (v *View) endingKey(t *target) string { return v.Owner + "\x00" + t.uri() }

// await waits for an upload of the owner to the same name that is about to be stored.
func (f *Files) await(t *target) {
	if f.EndingUploads != nil {
		f.EndingUploads.await(f.ctx, f.endingKey(t))
	}
}

// linkError returns an error of an operation on two names.
func linkError(op string, from, to *target, err error) error {
	return &os.LinkError{Op: op, Old: from.name, New: to.name, Err: err}
}

// namedMove replaces the paths in an error of the store by the paths that the user sees.
func namedMove(from, to *target, err error) error {
	if of, ok := errors.AsType[*os.LinkError](err); ok {
		return linkError(of.Op, from, to, of.Err)
	}
	return err
}
