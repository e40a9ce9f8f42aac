package control

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// hash handles HASH (draft-ietf-ftpext2-hash, 3) for a whole file, or for the range selected by RANG. OPTS HASH
// selects the algorithm.
func hash(r *fileRequest, arg string) (wire.Reply, error) {
	part := r.parameters.TakeRange()
	sum, end, err := r.hash(r.algorithm, arg, part)
	if err != nil {
		return wire.Reply{}, hashError(err)
	}
	return wire.NewReply(
		213, fmt.Sprintf("%s %d-%d %x %s", r.algorithm, part.From, max(0, end-1), sum, r.echo(arg))), nil
}

// siteHashSyntax is the syntax of SITE HASH, with the HEXDIG of RFC 5234, B.1.
const siteHashSyntax = " [<SP> SHA-256 <SP> 64HEXDIG]"

// siteHash handles SITE HASH, which no document defines. The next upload must have this hash. Without an argument, it
// need not.
func siteHash(id *identity, state *commandState, arg string) (wire.Reply, error) {
	switch known, ok := state.parameters.SetHash(arg); {
	case !known:
		return id.reply(504, i18n.Syntax, siteName("HASH")+siteHashSyntax)
	case !ok:
		return wire.Reply{}, errSyntax
	case arg == "":
		return id.reply(200, i18n.OK)
	}
	return id.reply(200, i18n.HashAccepted)
}

// hashError sets the reply codes for two errors, for which HASH has other codes than all other commands
// (draft-ietf-ftpext2-hash, 3.5).
func hashError(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &reply.CodeError{Code: 552, Err: err}
	case errors.Is(err, syscall.EISDIR):
		return &reply.CodeError{Code: 553, Err: err}
	}
	return err
}

// xhash handles XCRC, XMD5 and similar commands, which no document defines. The argument is a pathname, quoted or
// not, and optionally the start and end of a range. It is ambiguous, so xhash uses the first reading that names a
// file.
func xhash(verb string) fileCommand {
	return func(r *fileRequest, arg string) (wire.Reply, error) {
		var failure error
		for _, reading := range wire.ParseHashArgument(arg) {
			sum, end, err := r.hash(wire.HashOfVerb(verb), reading.Pathname, reading.ByteRange)
			if err == nil && reading.To > end {
				err = engine.ErrPastEnd
			}
			if err == nil {
				return wire.NewReply(250, fmt.Sprintf("%X", sum)), nil
			}
			if failure == nil || errors.Is(failure, fs.ErrNotExist) {
				failure = err
			}
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, engine.ErrPastEnd) {
				break
			}
		}
		if errors.Is(failure, engine.ErrPastEnd) {
			failure = &reply.CodeError{Code: 550, Err: failure}
		}
		return wire.Reply{}, failure
	}
}

// hash computes the checksum of a part of a file. It returns engine.ErrPastEnd if the part begins past the end of
// the file.
func (r *fileRequest) hash(algorithm, pathname string, part wire.ByteRange) (sum []byte, end int64, err error) {
	err = r.lookup(pathname, func(name string) (err error) {
		sum, end, err = r.Storage.Hash(name, algorithm, part.From, part.To)
		return err
	})
	if part.From > 0 && (errors.Is(err, fs.ErrInvalid) || err == nil && end <= part.From && part.To > end) {
		err = errors.Join(engine.ErrPastEnd, err)
	}
	return sum, end, err
}

// optsHash handles OPTS HASH (draft-ietf-ftpext2-hash, 3.2), which returns or selects the algorithm.
func optsHash(id *identity, state *commandState, name string) (wire.Reply, error) {
	if name != "" {
		algorithm, known := wire.FindHash(name)
		if !known {
			return id.reply(501, i18n.OptionUnknown, "OPTS HASH")
		}
		state.algorithm = algorithm
	}
	return wire.NewReply(200, state.algorithm), nil
}
