package control

import (
	"iter"
	"strconv"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// stat is STAT: of the connection without an argument, of a file or directory with one (RFC 959 4.1.3).
func (s *session) stat(arg string) (wire.Reply, error) {
	switch {
	case arg == "":
		return s.status(), nil
	case s.identity.login == nil:
		return s.reply(530, i18n.NotLoggedIn)
	default:
		return s.pathStatus(wire.WithoutOptions(arg))
	}
}

// pathStatus lists on the control connection what LIST would: 212 for a directory, 213 for a file.
func (s *session) pathStatus(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	leave, err := s.identity.scopes().EnterTransfer() // what it reads and sends is that of LIST
	if err != nil {
		return wire.Reply{}, err
	}
	defer leave()
	s.identity.listed = true
	l := list.NewLong(arg, name, s.request().listClient())
	line := l.Line
	l.Line = func(b []byte, e list.Entry, name string) []byte {
		return wire.AppendLine(append(b, ' '), string(line(nil, e, name))) // never the end of the reply (RFC 959 4.2)
	}
	err = s.perform(func() error {
		return s.op.Lookup(name, func(name string) error { return l.Open(s.op.Storage, name) })
	})
	if err != nil {
		return wire.Reply{}, s.about(err)
	}
	code := 212
	if l.IsFile() {
		code = 213
	}
	s.write(append(wire.AppendLine([]byte(strconv.Itoa(code)+"-"), s.identity.text(i18n.PathStatusIntro)), '\r', '\n'))
	if err := s.writeListing(l); err != nil {
		return s.statusInterrupted(s.about(err)), err
	}
	return wire.NewReply(code, s.identity.text(i18n.PathStatusEnd)), nil
}

// writeListing writes a listing as the middle lines of a reply, at the rate of a download. The storage delivers it
// page by page, so it is read by an operation of its own.
func (s *session) writeListing(l *list.Listing) error {
	next, stop := iter.Pull2(l.Blocks())
	defer func() {
		if !s.dialogue.closing { // else the storage is still at it
			stop()
		}
	}()
	pace := s.identity.scopes().Pace(false)
	for more := true; more; {
		var lines []byte
		err := s.perform(func() (err error) {
			lines, err, more = next()
			return err
		})
		if err == nil {
			err = s.op.failure(s.ctx.Err())
		}
		if err != nil {
			return err
		}
		for len(lines) > 0 {
			n := pace.Chunk(len(lines))
			if pace != nil {
				if err := s.perform(func() error { return pace.Wait(s.op.Context, n) }); err != nil {
					return err
				}
			}
			s.write(lines[:n])
			lines = lines[n:]
		}
	}
	return nil
}

// statusInterrupted ends the session in the middle of a listing whose next page has failed. The last line of a reply
// has the code of its first one (RFC 959 4.2), so a client would take any other end for that of the whole listing.
func (s *session) statusInterrupted(err error) wire.Reply {
	s.dialogue.closing = true
	return wire.NewReply(421, s.errorReply(err).Lines...)
}
