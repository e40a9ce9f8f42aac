package view

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A View is what a login sees of the storage, and may do there.
type View struct {
	Mounts    Mounts
	Policy    Policy
	Form      func(name string) string // gives a name the Unicode form in which it is created
	Printable bool                     // names with control characters are not created (Unicode category Cc)
	// Deny are the files that are not stored.
	Deny Names
	// MaxSize is how many bytes a stored file has at most, 0 for no limit.
	MaxSize     int64
	Directories *Directories // what exists for the sessions of the user

	Owner   string   // of interrupted uploads
	Endings *Endings // nil where interrupted uploads are not kept

	User   string // the name in events
	Events Sink   // nil for none
	Skip   Names  // files that have no events

	Past Past // shows the files as they were

	unseen unseen
}

// Files are the files of a login for one command. Each operation resolves the name to a target, asks for the right,
// calls the store and notes what has come of it, in this order. So it is all the same to a user who may not do
// something what the storage has under the name.
type Files struct {
	*View
	// Announced is how many bytes the client will store, as far as it has told that. An upload that is too large is
	// refused before its first byte.
	Announced int64

	ctx  context.Context
	note func(Note)
}

// For returns the files for a command. The end of ctx ends their operations and transfers. note gets what the command
// asks; it is called again for each spelling of a name that the command tries. It may be nil.
func (v *View) For(ctx context.Context, note func(Note)) *Files {
	if note == nil {
		note = func(Note) {}
	}
	return &Files{View: v, ctx: ctx, note: note}
}

// A target is what a name means to the user of a view.
type target struct {
	name      string // absolute and clean, as the user sees it
	today     string // the same without the moment of the past
	canonical string // today, in the form in which rights are compared
	rights    Rights // of the user
	mount     *Mount
	inner     string // the name within the mount, with a final slash if only the directory is meant
	fixed     bool   // it leads to a mount, so it stays where it is
	past      bool   // it cannot be changed
}

// resolve turns a name into its target, without a request. A name with a final slash means a directory, and the store
// never treats it as a file.
func (v *View) resolve(name string) *target {
	t := &target{name: path.Clean("/" + name)}
	today, moment, past := v.Past.find(t.name)
	t.today, t.canonical = today, norm.NFC.String(today)
	t.rights = v.rightsAt(t.name, t.canonical, past)
	t.mount, t.inner = v.Mounts.find(today)
	t.fixed = v.Mounts.leadTo(today)
	if past {
		v.moveBack(t, moment)
	}
	if strings.HasSuffix(name, "/") && t.inner != "/" {
		t.inner += "/"
	}
	return t
}

// Rights is what the user may do with what a pathname names. What leads to a mount stays where it is.
func (v *View) Rights(name string) Rights {
	name = path.Clean("/" + name)
	today, _, past := v.Past.find(name)
	rights := v.rightsAt(name, today, past)
	if v.Mounts.leadTo(today) || past && today == "/" {
		rights.Delete, rights.Rename = false, false
	}
	return rights
}

// Fixed reports whether what a pathname names leads to a mount, and so stays where it is.
func (v *View) Fixed(name string) bool {
	today, _, past := v.Past.find(path.Clean("/" + name))
	return !past && v.Mounts.leadTo(today)
}

// URI is the s3 URI of a pathname, empty for a name that no object can have. It needs no right, because it is made of
// the name alone.
func (v *View) URI(name string) string {
	return v.resolve(name).uri()
}

// uri is the s3 URI of the target.
func (t *target) uri() string { return t.mount.Store.URI(t.inner) }

// fail is the error of an operation on the target.
func (t *target) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: t.name, Err: err}
}

// stays reports whether the target is a directory that cannot be moved, replaced or removed.
func (t *target) stays() bool { return t.fixed || t.name == "/" }

// ErrFixed reports a change of a directory that stays where it is: the root, or one that leads to a mount.
var ErrFixed = fmt.Errorf("%w: the directory is the root, or leads to a mount", fs.ErrPermission)

// errPolicy tells the log apart what the configuration refuses and what S3 refuses.
var errPolicy = fmt.Errorf("%w by the permissions in the configuration", fs.ErrPermission)

// denied is the error for an operation that the policy refuses.
func (t *target) denied(op string) error { return t.fail(op, errPolicy) }

// named lets an error of the store name the path that the user sees.
func (t *target) named(err error) error {
	if err == nil || t.inner == t.name {
		return err
	}
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return t.fail(of.Op, of.Err)
	}
	return err
}

// canSee reports whether the user may know what exists under a name.
func (v *View) canSee(t *target) bool {
	if t.past && !v.Past.mayShow(t.name) {
		return false
	}
	return t.rights.Read || t.rights.List || v.Policy.At(path.Dir(t.canonical)).List ||
		!t.past && v.unseen.hasStored(t.canonical)
}

// printable refuses a new name with a control character. What has such a name already can be read, renamed and
// removed. It looks at the whole pathname, because a file of S3 makes its directories.
func (v *View) printable(op string, t *target) error {
	if v.Printable && strings.ContainsFunc(t.name, unicode.IsControl) {
		return t.fail(op, syscall.EILSEQ)
	}
	return nil
}

// endingKey is the name of a file for all sessions of the owner.
func (v *View) endingKey(t *target) string { return v.Owner + "\x00" + t.uri() }

// await waits for an upload of the owner to the same name that is about to be stored.
func (f *Files) await(t *target) {
	if f.Endings != nil {
		f.Endings.await(f.ctx, f.endingKey(t))
	}
}

// linkError is the error of an operation on two names.
func linkError(op string, from, to *target, err error) error {
	return &os.LinkError{Op: op, Old: from.name, New: to.name, Err: err}
}

// namedMove lets an error of the store about two names name the paths that the user sees.
func namedMove(from, to *target, err error) error {
	if of, ok := errors.AsType[*os.LinkError](err); ok {
		return linkError(of.Op, from, to, of.Err)
	}
	return err
}
