package control

import (
	"io"
	"strings"

	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
)

// list handles LIST, NLST and MLSD.
func (s *session) list(arg string) (wire.Reply, error) {
	if s.op.command.Name != "MLSD" {
		arg = wire.WithoutOptions(arg)
	}
	name, err := s.absolute(arg)
	if err != nil {
		return wire.Reply{}, err
	}
	if s.identity.login.Compatibility.BackslashOf() == pathname.BackslashSeparates && strings.Contains(arg, `\`) {
		arg = s.identity.nameCodec().EncodePath(name) // NLST repeats it
	}
	s.identity.listed = true
	var l *list.Listing
	client := s.request().listClient()
	switch s.op.command.Name {
	case "LIST":
		l = list.NewLong(arg, name, client)
	case "NLST":
		l = list.NewNames(arg, name, client)
	case "MLSD":
		l = list.NewFacts(s.state.facts, name, s.state.directory, client)
	}
	return s.runTransfer(&dataTransfer{listing: l}, s.op.command.Name, name, func(op *operation) error {
		open := func(name string) error { return l.Open(op.Storage, name) }
		if err := op.Do(func() error { return op.Lookup(name, open) }); err != nil {
			return err
		}
		_ = op.Transfer.Send(op.Context, op.Starting, func(w io.Writer) error { // op.failure reads the error
			return op.Do(func() error { return l.WriteLines(w) })
		})
		return op.Err
	})
}
