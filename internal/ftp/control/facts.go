package control

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// mlst handles MLST (RFC 3659, 7), which returns the selected facts of one entry, followed by the pathname that
// the client sent.
func mlst(r *fileRequest, arg string) (wire.Reply, error) {
	info, err := r.find(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	shown := r.echo(arg)
	if arg == "" {
		shown = r.codec.EncodePath(r.directory)
	}
	client := r.listClient()
	entry := list.Entry{FileInfo: client.Dated(info, time.Time{}), Dir: path.Dir(r.Path)}
	line := append(r.facts.Append([]byte(" "), client, entry), shown...)
	return wire.NewReply(250, r.text(i18n.FileDetails), string(line), r.text(i18n.DetailsEnd)), nil
}

// optsMLST handles OPTS MLST, which selects the facts of MLST and MLSD. Unknown facts are ignored, and the reply
// lists the selected ones. A malformed list changes nothing (RFC 3659, 7.9).
func optsMLST(id *identity, state *commandState, options string, hasOptions bool) (wire.Reply, error) {
	var facts list.Facts
	if hasOptions {
		var ok bool
		if facts, ok = list.ParseFacts(options); !ok {
			return id.reply(501, i18n.OptionUnknown, "OPTS MLST")
		}
	}
	state.facts = facts
	line := "MLST OPTS"
	if len(facts) > 0 {
		line += " " + facts.String()
	}
	return wire.NewReply(200, line), nil
}

// mdtm handles MDTM (RFC 3659, 3), which returns the modification time of a file. Directories have none. Clients
// from before MFMT send MDTM with the argument of MFMT to set the time. If a file has exactly the name that such
// an argument spells, its time is returned instead.
func mdtm(r *fileRequest, arg string) (wire.Reply, error) {
	var info fs.FileInfo
	err := r.lookup(arg, func(name string) (err error) {
		info, err = r.Storage.StatFile(name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		if t, pathname, ok := wire.ParseMFMT(arg); ok {
			return r.setModified(pathname, t)
		}
	}
	if err != nil {
		return wire.Reply{}, err
	}
	value, ok := wire.AppendTimeVal(nil, info.ModTime())
	if !ok {
		return wire.Reply{}, r.about(arg, &fs.PathError{Op: "mdtm", Path: r.Path, Err: errors.ErrUnsupported})
	}
	return wire.NewReply(213, string(value)), nil
}

// setTime returns a command that sets the modification time of a file. parse splits the argument into the time and the
// pathname. The command is MFMT (draft-somers-ftp-mfxx, 3) or SITE UTIME, which clients from before MFMT send.
func setTime(parse func(arg string) (t time.Time, pathname string, ok bool)) fileCommand {
	return func(r *fileRequest, arg string) (wire.Reply, error) {
		t, pathname, ok := parse(arg)
		if !ok {
			return wire.Reply{}, errSyntax
		}
		return r.setModified(pathname, t)
	}
}

// mff handles MFF (draft-somers-ftp-mfxx, 5), whose argument has facts, one space and a pathname. Only the
// modification time can be changed, because S3 sets the creation time itself. If any fact is refused, nothing
// changes.
func mff(r *fileRequest, arg string) (wire.Reply, error) {
	t, refused, pathname, ok := wire.ParseMFF(arg)
	switch {
	case !ok:
		return wire.Reply{}, errSyntax
	case refused != nil:
		return wire.NewReply(
			504, r.text(i18n.ParameterNotImplemented, "MFF")+" ("+wire.Upper(strings.Join(refused, ", "))+")"), nil
	}
	return r.setModified(pathname, t)
}

// setModified sets the modification time of a file and replies with the new time.
func (r *fileRequest) setModified(pathname string, t time.Time) (wire.Reply, error) {
	if err := r.lookup(pathname, func(name string) error { return r.Storage.SetTime(name, t) }); err != nil {
		return wire.Reply{}, err
	}
	value, _ := wire.AppendTimeVal(nil, t) // t was parsed from a time value, so it has one
	return wire.NewReply(213, "Modify="+string(value)+"; "+r.echo(pathname)), nil
}
