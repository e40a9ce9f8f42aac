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

// absolute returns the absolute pathname in UTF-8 for the argument of a command. If the name reveals the charset
// of the client, the session keeps that charset.
func (s *session) absolute(arg string) (string, error) {
	return s.read(arg, pathname.Codec.Absolute)
}

// absoluteFile is like absolute for the pathname of a file to create.
func (s *session) absoluteFile(arg string) (string, error) {
	return s.read(arg, pathname.Codec.AbsoluteFile)
}

// read parses a pathname with a method of the codec.
func (s *session) read(
	arg string, absolute func(c pathname.Codec, workingDirectory, arg string) (pathname.Name, error),
) (string, error) {
	codec := s.identity.nameCodec()
	s.op.fileName = codec.Echo(s.state.directory, arg)
	name, err := absolute(codec, s.state.directory, arg)
	if err != nil {
		return "", s.about(err)
	}
	s.op.Names.Sent(name)
	s.identity.setCharset(s.op.Names.Choice)
	return name.Path, nil
}

// about adds the name in the command, or both names of a rename, to an error.
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

// A fileRequest is the part of a session that a command on files may use.
type fileRequest struct {
	*engine.Operation // its Path receives the path in the storage
	// commandState is a copy, which the session adopts when the command has ended. A session that was cut does not
	// wait for its command and ignores the copy.
	commandState

	login   *account.Login
	codec   pathname.Codec
	locale  *reply.Locale
	shown   string    // name sent by the client, as shown in replies
	started time.Time // when the server started
}

// request returns the fileRequest of the current command.
func (s *session) request() *fileRequest {
	return &fileRequest{
		Operation: &s.op.Operation, commandState: s.state,
		login: s.identity.login, codec: s.identity.nameCodec(), locale: s.identity.locale,
		shown: s.op.fileName, started: s.shared.started,
	}
}

// listClient returns what a listing needs to know about the client.
func (r *fileRequest) listClient() *list.Client {
	return &list.Client{
		Names: r.codec, View: r.login.View, NoOverwrite: r.login.NoOverwrite(), Started: r.started,
	}
}

// statOrPending returns the result of stat or, if there is no file, a description of an upload that the user can
// resume. Clients use SIZE and MLST to learn the offset at which to resume.
func (r *fileRequest) statOrPending(name string, stat func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := stat(name)
	if !r.login.Tenant.Resumable() || !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	return r.Storage.PendingUpload(name)
}

// statFor returns the function that finds the file of a library command under one spelling of its name. Commands
// that create, change or delete a file do not need one.
func (r *fileRequest) statFor(verb string) func(name string) (fs.FileInfo, error) {
	switch verb {
	case "CWD":
		return r.StatDir
	case "RNFR": // RNTO checks permissions again, but a client should learn here that it may not rename
		return r.Storage.StatToRename
	case "SIZE":
		return r.statSized
	}
	return nil
}

// statSized finds the file or the resumable upload for SIZE.
func (r *fileRequest) statSized(name string) (fs.FileInfo, error) {
	info, err := r.statOrPending(name, r.Storage.StatFile)
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "size", Path: name, Err: syscall.EISDIR}
	}
	return info, err
}

// newName returns an unused pathname for STOU (RFC 1123, 4.1.2.9). The name contains the time in nanoseconds, and
// newName checks that no such file exists. If the client sent a name, the time is inserted before its extension,
// because other programs recognize files by the extension.
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

// lookup calls work with the argument of a command, spelled as in the storage.
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

// about adds the name in the argument to an error.
func (r *fileRequest) about(arg string, err error) error {
	if err == nil {
		return nil
	}
	return &reply.FileError{Names: []string{r.echo(arg)}, Err: err}
}

// stat describes a file, a resumable upload or a directory. The root always exists.
func (r *fileRequest) stat(name string) (fs.FileInfo, error) {
	if name == "/" {
		return view.Directory("/"), nil
	}
	return r.statOrPending(name, r.Storage.Stat)
}

// find returns a description of the file, resumable upload or directory that the argument names.
func (r *fileRequest) find(arg string) (info fs.FileInfo, err error) {
	err = r.lookup(arg, func(name string) (err error) {
		info, err = r.stat(name)
		return err
	})
	return info, err
}

// echo returns the argument of a command as shown in replies.
func (r *fileRequest) echo(arg string) string { return r.codec.Echo(r.directory, arg) }

func (r *fileRequest) text(id i18n.ID, args ...string) string { return r.locale.Text(id, args...) }

// pathReply returns a reply that begins with a quoted pathname, like 257 (RFC 959, 4.2.2 and appendix II).
func (r *fileRequest) pathReply(code int, pathname string, id i18n.ID) wire.Reply {
	return wire.NewReply(code, wire.Quote(r.codec.EncodePath(pathname))+" "+r.locale.Words(id))
}

// reply returns a reply of one line in the client's language.
func (r *fileRequest) reply(code int, id i18n.ID, args ...string) wire.Reply {
	return wire.NewReply(code, r.text(id, args...))
}
