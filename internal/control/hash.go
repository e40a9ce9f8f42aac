package control

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/engine"
	"github.com/babelftp/babelftp/internal/reply"
	"github.com/babelftp/babelftp/internal/syntax"
	"github.com/babelftp/babelftp/internal/wire"
)

// optsHash is OPTS HASH (draft-ietf-ftpext2-hash 3.2), which tells the algorithm, or chooses one.
func (s *session) optsHash(name string) {
	if name != "" {
		algorithm, known := syntax.FindHash(name)
		if !known {
			s.reply(501, i18n.OptionUnknown, "OPTS HASH")
			return
		}
		s.algorithm = algorithm
	}
	s.send(wire.NewReply(200, s.algorithm))
}

// hash is HASH (draft-ietf-ftpext2-hash 3): of the whole file, or of what RANG has chosen.
func (s *session) hash(pathname string) {
	r := s.parameters.TakeRange()
	sum, end, err := s.hashOf(s.algorithm, pathname, r)
	if err != nil {
		r := s.errorReply(err)
		r.Code = reply.HashCode(err, r.Code)
		s.send(r)
		return
	}
	text := fmt.Sprintf("%s %d-%d %x %s", s.algorithm, r.From, max(0, end-1), sum, s.echo(pathname))
	s.send(wire.NewReply(213, text))
}

// xhash is XCRC, XMD5 and their like, which no document defines: a pathname, perhaps in quotes, and perhaps where the bytes begin and end.
// What it means is the first of its readings that names a file.
func (s *session) xhash(arg string) {
	var failure error
	for _, reading := range syntax.ParseHashArgument(arg) {
		sum, end, err := s.hashOf(syntax.HashOfVerb(s.verb), reading.Pathname, reading.ByteRange)
		if err == nil && reading.To > end {
			err = engine.ErrPastEnd
		}
		if err == nil {
			s.send(wire.NewReply(250, fmt.Sprintf("%X", sum)))
			return
		}
		if failure == nil || errors.Is(failure, fs.ErrNotExist) {
			failure = err
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, engine.ErrPastEnd) {
			break
		}
	}
	r := s.errorReply(failure)
	if errors.Is(failure, engine.ErrPastEnd) {
		r.Code = 550
	}
	s.send(r)
}

// hashOf asks the storage. An offset beyond the end is engine.ErrPastEnd.
func (s *session) hashOf(algorithm, pathname string, r syntax.ByteRange) (sum []byte, end int64, err error) {
	err = s.lookup(pathname, func(name string) (err error) {
		sum, end, err = s.op.Storage.Hash(s.op.Context, name, algorithm, r.From, r.To)
		return err
	})
	if r.From > 0 && (errors.Is(err, fs.ErrInvalid) || err == nil && end <= r.From && r.To > end) {
		err = errors.Join(engine.ErrPastEnd, err)
	}
	return sum, end, err
}
