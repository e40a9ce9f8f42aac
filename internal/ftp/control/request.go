package control

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/users/account"
)

// absolute returns the absolute pathname in UTF-8 for a command's argument. If the name shows the charset of the
// client, it decides the charset of the session.
func (s *session) absolute(arg string) (string, error) {
	return s.read(arg, pathname.Codec.Absolute)
}

// absoluteFile is absolute for the pathname of a file to create.
func (s *session) absoluteFile(arg string) (string, error) {
	return s.read(arg, pathname.Codec.AbsoluteFile)
}

// read reads a pathname with a method of the codec.
func (s *session) read(
	arg string, absolute func(c pathname.Codec, workingDirectory, arg string) (pathname.Name, error),
) (string, error) {
	codec := s.identity.nameCodec()
	s.op.fileName = codec.Echo(s.settings.directory, arg)
	name, err := absolute(codec, s.settings.directory, arg)
	if err != nil {
		return "", s.about(err)
	}
	s.op.Names.Sent(name)
	s.identity.decide(s.op.Names.Choice)
	return name.Path, nil
}

// about adds the name of the file that the command names, or both names of a rename, to an error.
func (s *session) about(err error) error {
	op := s.op
	if err == nil || op.fileName == "" {
		return err
	}
	names := []string{op.fileName}
	if op.Source != "" {
		names = reply.MoveNames(op.renaming.shown, op.fileName, err)
	}
	return &reply.FileError{Names: reply.EntryNames(s.identity.nameCodec(), names, err), Err: err}
}

// A fileRequest is a command on files: who asks, with which settings, and the storage.
type fileRequest struct {
	*engine.Operation // keeps in Path where the storage has the file
	// settings are a copy. The session adopts it when the command has ended. A session that was cut does not wait for
	// its command, and never looks at the copy.
	settings

	login   *account.Login
	codec   pathname.Codec
	locale  *reply.Locale
	shown   string    // the name that the client has given, as a reply repeats it
	started time.Time // when the server started
}

// request returns the command as a fileCommand gets it.
func (s *session) request() *fileRequest {
	return &fileRequest{
		Operation: &s.op.Operation, settings: s.settings,
		login: s.identity.login, codec: s.identity.nameCodec(), locale: s.identity.locale,
		shown: s.op.fileName, started: s.shared.started,
	}
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

// statFor returns the function that finds the file of a library command, in one spelling of its name. Commands that
// create, change or delete a file need none.
func (r *fileRequest) statFor(verb string) func(name string) (fs.FileInfo, error) {
	switch verb {
	case "CWD":
		return r.StatDir
	case "RNFR": // RNTO checks the right to rename again, but a client should learn here that it is missing
		return r.Storage.StatToRename
	case "SIZE":
		return r.statSized
	}
	return nil
}

// statSized finds what SIZE asks for: a file, or an upload that can be resumed.
func (r *fileRequest) statSized(name string) (fs.FileInfo, error) {
	info, err := r.statOrPending(name, r.Storage.StatFile)
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "size", Path: name, Err: syscall.EISDIR}
	}
	return info, err
}

// newName returns a pathname for STOU that is not taken (RFC 1123 4.1.2.9). It is new because it holds the time in
// nanoseconds and the storage is asked. Around the time stand the name that the client may have given and its
// extension, which tells what the file is.
func (r *fileRequest) newName(arg string) (string, error) {
	name := path.Join(r.directory, "ftp")
	if arg != "" {
		sent, err := r.codec.AbsoluteFile(r.directory, arg)
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
	name, err := r.codec.Absolute(r.directory, arg)
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

// stat describes a file, an upload that can be resumed or a directory.
func (r *fileRequest) stat(name string) (fs.FileInfo, error) {
	if name == "/" {
		return view.Directory("/"), nil
	}
	return r.statOrPending(name, r.Storage.Stat)
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
func (r *fileRequest) echo(arg string) string { return r.codec.Echo(r.directory, arg) }

func (r *fileRequest) text(id i18n.ID, args ...string) string { return r.locale.Text(id, args...) }

// named returns a reply with a pathname first, as 257 has it (RFC 959 4.2.2 and appendix II).
func (r *fileRequest) named(code int, pathname string, id i18n.ID) wire.Reply {
	return wire.NewReply(code, wire.Quote(r.codec.EncodePath(pathname))+" "+r.locale.Words(id))
}

// reply returns a reply of one line in the client's language.
func (r *fileRequest) reply(code int, id i18n.ID, args ...string) wire.Reply {
	return wire.NewReply(code, r.text(id, args...))
}
