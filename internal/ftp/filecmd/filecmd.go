// Package filecmd answers the commands about files that need neither a data connection nor the session engine.
//
// A [Command] asks the storage, and returns the reply or an error. It may take long, so the session calls it in a
// goroutine of its own, and ends it by the context of the operation.
//
// Implemented here:
//
//   - RFC 3659, sections 3 and 7: MDTM and MLST
//   - draft-somers-ftp-mfxx-03: MFMT, MFF
//   - draft-peterson-streamlined-ftp-command-extensions-10, section 4: AVBL
//   - draft-ietf-ftpext2-hash-03: HASH
//   - draft-masinter-url-i18n, sections 2.1 and 2.2: SITE URL
package filecmd

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/users/account"
)

// ErrSyntax reports an argument that the command cannot read (reply 501).
var ErrSyntax = errors.New("argument cannot be read")

// A Request says who asks, and has the storage.
type Request struct {
	*engine.Operation // keeps in Path where the storage has the file

	Login            *account.Login
	Names            pathname.Codec
	WorkingDirectory string // absolute
	Locale           *reply.Locale
	Started          time.Time // when the server started
}

// A Command answers a command with its argument. An error is for the session to answer.
type Command func(r *Request, arg string) (wire.Reply, error)

// ListClient describes the client to a listing.
func (r *Request) ListClient() *list.Client {
	return &list.Client{
		Names: r.Names, Rights: r.Login.Rights, NoOverwrite: r.Login.NoOverwrite(), ObjectURI: r.Login.View.URI,
		Started: r.Started,
	}
}

// StatOrPending describes what stat finds. Where there is nothing, it describes the upload that the user can resume.
// By SIZE and MLST clients learn where.
func (r *Request) StatOrPending(name string, stat func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := stat(name)
	if !r.Login.Tenant.Resumable() || !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	return r.Storage.PendingUpload(name)
}

// NewName returns a pathname for STOU that is not taken (RFC 1123 4.1.2.9). It is new because it holds the time in
// nanoseconds and the storage is asked. Around the time stand the name that the client may have given and its
// extension, which tells what the file is.
func (r *Request) NewName(arg string) (string, error) {
	name := path.Join(r.WorkingDirectory, "ftp")
	if arg != "" {
		var err error
		if name, err = r.Names.ResolveFile(r.WorkingDirectory, arg); err != nil {
			return "", err
		}
	}
	extension := path.Ext(name)
	if extension == path.Base(name) { // a dot at the beginning hides a file
		extension = ""
	}
	name = strings.TrimSuffix(name, extension) + time.Now().UTC().Format("-20060102T150405.000000000") + extension
	taken, err := pathname.Exists(func(name string) error { _, err := r.Storage.StatFile(name); return err }, name)
	if taken {
		err = fs.ErrExist
	}
	return name, err
}

// lookup does work on the argument of a command, in the form of the name that the storage has.
func (r *Request) lookup(arg string, work func(name string) error) error {
	name, err := r.Names.Resolve(r.WorkingDirectory, arg)
	if err == nil {
		err = r.Lookup(name, work)
	}
	return r.about(arg, err)
}

// about adds to an error the name of the file that it describes.
func (r *Request) about(arg string, err error) error {
	if err == nil {
		return nil
	}
	return &reply.FileError{Name: r.echo(arg), Err: err}
}

// find looks for a file, an upload that can be resumed or a directory; the root needs no look.
func (r *Request) find(arg string) (info fs.FileInfo, err error) {
	err = r.lookup(arg, func(name string) (err error) {
		info, err = r.stat(name)
		return err
	})
	return info, err
}

// echo is the argument of a command as a reply repeats it.
func (r *Request) echo(arg string) string { return r.Names.Echo(r.WorkingDirectory, arg) }

func (r *Request) text(id i18n.ID, args ...string) string { return r.Locale.Text(id, args...) }

// reply is a reply of one line in the client's language.
func (r *Request) reply(code int, id i18n.ID, args ...string) wire.Reply {
	return wire.NewReply(code, r.text(id, args...))
}
