package control

import (
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// fixedReply returns the function of a command that always sends the same reply.
func fixedReply(code int, id i18n.ID, args ...string) func(*session, string) (wire.Reply, error) {
	return func(s *session, _ string) (wire.Reply, error) { return s.reply(code, id, args...) }
}

// A stateCommand shows or changes the identity and the state of the client.
type stateCommand func(id *identity, state *commandState, arg string) (wire.Reply, error)

// onState returns the function of a row for a stateCommand.
func onState(command stateCommand) func(*session, string) (wire.Reply, error) {
	return func(s *session, arg string) (wire.Reply, error) { return command(&s.identity, &s.state, arg) }
}

// A fileCommand calls the storage. It runs in its own goroutine.
type fileCommand func(r *fileRequest, arg string) (wire.Reply, error)

// onFile returns the function of a row for a fileCommand.
func onFile(command fileCommand) func(*session, string) (wire.Reply, error) {
	return func(s *session, arg string) (wire.Reply, error) { return s.onFile(arg, command) }
}

// onFile runs a fileCommand and waits for it.
func (s *session) onFile(arg string, command fileCommand) (wire.Reply, error) {
	request := s.request()
	var r wire.Reply
	err := s.perform(func() (err error) {
		r, err = command(request, arg)
		return err
	})
	if s.dialogue.closing { // the command may still be running
		return wire.Reply{}, err
	}
	s.state = request.commandState
	if err != nil {
		return wire.Reply{}, err
	}
	return r, nil
}

// byLibrary returns the function of a row for a command that ftpserverlib performs on a pathname. After it has
// succeeded, then returns the reply and may change the state.
func byLibrary(verb string, then func(r *fileRequest) wire.Reply) func(*session, string) (wire.Reply, error) {
	return func(s *session, arg string) (wire.Reply, error) {
		name, err := s.absolute(arg)
		if err != nil {
			return wire.Reply{}, err
		}
		return s.byLibrary(verb, name, then)
	}
}

// byLibrary lets ftpserverlib perform a command on an absolute pathname.
func (s *session) byLibrary(verb, name string, then func(r *fileRequest) wire.Reply) (wire.Reply, error) {
	r := s.request()
	r.Verb, r.Name, r.Stat = verb, name, r.statFor(verb)
	if err := s.about(s.perform(func() error { return s.engine.Run(r.Operation) })); err != nil {
		return wire.Reply{}, err
	}
	reply := then(r)
	s.state = r.commandState
	return reply, nil
}

// confirms returns a function that replies 250 with a message.
func confirms(id i18n.ID) func(*fileRequest) wire.Reply {
	return func(r *fileRequest) wire.Reply { return r.reply(250, id) }
}
