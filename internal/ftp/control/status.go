package control

import (
	"iter"
	"strconv"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// stat handles STAT: without an argument it describes the connection, with one it lists a file or directory (RFC
// 959, 4.1.3).
func (s *session) stat(arg string) (wire.Reply, error) {
	switch {
	case arg == "":
		return s.status(), nil
	case s.identity.login == nil:
		return s.reply(530, i18n.NotLoggedIn)
	case s.identity.login.MustChangePassword():
		return s.reply(530, i18n.PasswordMustChange)
	default:
		return s.pathStatus(wire.WithoutOptions(arg))
	}
}

// pathStatus sends the output of LIST on the control connection, with code 212 for a directory and 213 for a file.
func (s *session) pathStatus(arg string) (wire.Reply, error) {
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	leave, err := s.identity.scopes().AcquireTransfer() // it costs as much as LIST
	if err != nil {
		return wire.Reply{}, err
	}
	defer leave()
	s.identity.listed = true
	l := list.NewLong(arg, name, s.request().listClient())
	line := l.Line
	l.Line = func(b []byte, e list.Entry, name string) []byte {
		// The leading space keeps a line from looking like the end of the reply (RFC 959, 4.2).
		return wire.AppendLine(append(b, ' '), string(line(nil, e, name)))
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

// writeListing writes a listing as the middle lines of a reply, at the rate limit of downloads. Each page of the
// storage is read by its own call of perform.
func (s *session) writeListing(l *list.Listing) error {
	next, stop := iter.Pull2(l.Blocks())
	defer func() {
		if !s.dialogue.closing { // otherwise the storage may still be working on it
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

// statusInterrupted ends the session in the middle of a listing whose next page has failed. The last line of a
// reply has the code of the first line (RFC 959, 4.2), so a client would take any other ending for a complete
// listing.
func (s *session) statusInterrupted(err error) wire.Reply {
	s.dialogue.closing = true
	return wire.NewReply(421, s.errorReply(err).Lines...)
}
