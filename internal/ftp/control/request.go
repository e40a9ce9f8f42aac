package control

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

// errSyntax reports an argument that the command cannot read (reply 501).
var errSyntax = errors.New("argument cannot be read")

// A fileRequest says who asks, and has the storage.
type fileRequest struct {
	*engine.Operation // keeps in Path where the storage has the file

	login            *account.Login
	codec            pathname.Codec
	workingDirectory string // absolute
	locale           *reply.Locale
	started          time.Time // when the server started
}

// A fileCommand answers a command with its argument. An error is for the session to answer.
type fileCommand func(r *fileRequest, arg string) (wire.Reply, error)

// request is the command as a fileCommand gets it.
func (s *session) request() *fileRequest {
	return &fileRequest{
		Operation: &s.op.Operation, workingDirectory: s.directory,
		login: s.identity.login, codec: s.identity.nameCodec(), locale: s.identity.locale, started: s.server.started,
	}
}

// answer lets a fileCommand answer.
func (s *session) answer(arg string, command fileCommand) (wire.Reply, error) {
	request := s.request()
	var r wire.Reply
	err := s.perform(func() (err error) {
		r, err = command(request, arg)
		return err
	})
	switch {
	case errors.Is(err, errSyntax):
		return s.syntaxError()
	case err != nil:
		return wire.Reply{}, err
	}
	return r, nil
}

// onFile makes a row of a table.
func onFile(command fileCommand) func(*session, string) (wire.Reply, error) {
	return func(s *session, arg string) (wire.Reply, error) { return s.answer(arg, command) }
}

// listClient describes the client to a listing.
func (r *fileRequest) listClient() *list.Client {
	return &list.Client{
		Names: r.codec, View: r.login.View, NoOverwrite: r.login.NoOverwrite(), Started: r.started,
	}
}

// statOrPending describes what stat finds. Where there is nothing, it describes the upload that the user can resume.
// By SIZE and MLST clients learn where.
func (r *fileRequest) statOrPending(name string, stat func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := stat(name)
	if !r.login.Tenant.Resumable() || !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	return r.Storage.PendingUpload(name)
}

// newName returns a pathname for STOU that is not taken (RFC 1123 4.1.2.9). It is new because it holds the time in
// nanoseconds and the storage is asked. Around the time stand the name that the client may have given and its
// extension, which tells what the file is.
func (r *fileRequest) newName(arg string) (string, error) {
	name := path.Join(r.workingDirectory, "ftp")
	if arg != "" {
		sent, err := r.codec.AbsoluteFile(r.workingDirectory, arg)
		if err != nil {
			return "", err
		}
		r.Names.Sent(sent)
		name = sent.Path
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
func (r *fileRequest) lookup(arg string, work func(name string) error) error {
	name, err := r.absolute(arg)
	if err == nil {
		err = r.Lookup(name, work)
	}
	return r.about(arg, err)
}

// absolute returns the absolute pathname in UTF-8 for an argument.
func (r *fileRequest) absolute(arg string) (string, error) {
	name, err := r.codec.Absolute(r.workingDirectory, arg)
	if err == nil {
		r.Names.Sent(name)
	}
	return name.Path, err
}

// about adds to an error the name of the file that it describes.
func (r *fileRequest) about(arg string, err error) error {
	if err == nil {
		return nil
	}
	return &reply.FileError{Names: []string{r.echo(arg)}, Err: err}
}

// find looks for a file, an upload that can be resumed or a directory; the root needs no look.
func (r *fileRequest) find(arg string) (info fs.FileInfo, err error) {
	err = r.lookup(arg, func(name string) (err error) {
		info, err = r.stat(name)
		return err
	})
	return info, err
}

// echo is the argument of a command as a reply repeats it.
func (r *fileRequest) echo(arg string) string { return r.codec.Echo(r.workingDirectory, arg) }

func (r *fileRequest) text(id i18n.ID, args ...string) string { return r.locale.Text(id, args...) }

// reply is a reply of one line in the client's language.
func (r *fileRequest) reply(code int, id i18n.ID, args ...string) wire.Reply {
	return wire.NewReply(code, r.text(id, args...))
}
