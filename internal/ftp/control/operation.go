package control

import (
	"context"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// How many bytes of commands may wait for one that is running before the session stops reading: TCP then holds back
// the client. Before the login it is enough for ten short commands, which some clients send at once.
const (
	maxQueued            = 64 << 10
	maxQueuedBeforeLogin = 2 << 10
)

// hangUpInterval is how often a session that does not read asks the kernel whether the client is still there.
const hangUpInterval = time.Second

// endTimeout bounds the wait for a command that is running when its session is cut.
const endTimeout = 30 * time.Second

// An operation is a command that is running: what it asks of the storage, and what may end it.
type operation struct {
	engine.Operation
	row     command
	command report.Command

	transfer *transfer        // nil before it begins, and for a command without a data connection
	begins   chan struct{}    // receives once, when the client may get 150
	told     *report.Transfer // what the observers know of it
	prepared prepared         // what a transfer has taken

	cancel   context.CancelCauseFunc // of Context
	fileName string                  // that the client has given, as a reply repeats it
	renaming *renaming               // of RNFR, nil unless that was the command before

	lines      <-chan *wire.Line // nil when no more come
	peerClosed <-chan struct{}   // nil when the client is known to have disconnected
	done       <-chan struct{}   // of the session, nil when it is known to be cut
	tooLate    <-chan time.Time  // nil until the session is cut.

	ended       bool // the observers have its outcome
	beforeLogin bool // whether it began so: PASS changes that while the session waits
	mayQueue    int  // how many bytes of other commands may wait for it

	mu    sync.Mutex // a session that was cut does not wait for its command
	asked view.Note  // of the storage
}

// newOperation makes the operation of a command, and tells the observers of it.
func (s *session) newOperation(row command, line report.Command) *operation {
	conn := s.dialogue.conn
	op := &operation{row: row, command: line, lines: conn.Lines(), peerClosed: conn.PeerClosed(), done: s.dialogue.done}
	s.identify()
	op.Context, op.cancel = context.WithCancelCause(s.observers.CommandBegan(s.ctx, line))
	if op.beforeLogin = s.identity.login == nil; op.beforeLogin {
		op.mayQueue = maxQueuedBeforeLogin
	} else {
		op.mayQueue = maxQueued
		op.Storage = s.identity.login.Files(op.Context, op.note)
		op.Names = s.identity.resolver(op.Storage, s.directory)
	}
	return op
}

// replaces says whether the command replaces a file where its user may.
func (op *operation) replaces() bool {
	switch op.row.kind {
	case report.Upload:
		return op.command.Name != "STOU"
	case report.Rename, report.Copy:
		return true
	}
	return false
}

// endOperation ends the context of the command that has been answered, and lets go of its storage and its data
// connection: most sessions are idle. A session that was cut may have left the command running.
func (s *session) endOperation() {
	if s.op == nil {
		return
	}
	s.op.cancel(nil)
	if s.dialogue.closing {
		return
	}
	s.op = nil
}

// await waits until the work of the command that is running has ended, and returns its error. The session waits for
// logins, the storage, the engine and data connections in this loop only, so all commands end alike: ABOR, the end of
// the control connection and a shutdown cancel the operation and stop its transfer, and the command then ends with a
// reply. STAT is answered during a transfer. Other commands are queued.
//
// If a session that was cut has waited too long, await returns without the work having ended.
func (s *session) await(work <-chan error) (ended bool, err error) {
	op := s.op
	var full *time.Ticker // nil while the session reads
	for {
		lines, look := op.lines, (<-chan time.Time)(nil)
		if s.dialogue.queued.Holds(op.mayQueue) {
			if lines = nil; full == nil {
				full = time.NewTicker(hangUpInterval)
				defer full.Stop()
			}
			look = full.C
		}
		select {
		case err = <-work:
			s.sayIfBegins() // or 226 would overtake 150
			return true, err
		case <-op.begins:
			s.goOn(s.transferStarting())
			select {
			case err = <-work: // a small file has been sent already, and both replies leave in one write
				return true, err
			default:
				s.flush()
			}
		case l, more := <-lines:
			if !more {
				op.lines = nil
				continue
			}
			s.handleDuringCommand(l)
		case <-op.peerClosed:
			op.peerClosed = nil
			// A client that has sent QUIT may end its side: the commands before are done and answered (RFC 959 4.1.1).
			if op.transfer != nil || !s.dialogue.queued.Contains("QUIT") {
				op.stop(dataconn.ErrPeerClosed)
			}
		case <-look:
			// The session does not read up to the end of the connection. What a user has sent before it counts, and
			// may end with QUIT.
			if op.beforeLogin && s.dialogue.conn.HungUp() {
				op.stop(dataconn.ErrPeerClosed)
			}
		case <-op.done:
			// The storage has been cancelled too. It may have an upload to abort.
			op.done = nil
			op.stop(context.Cause(s.ctx))
			op.tooLate = time.After(endTimeout)
		case <-op.tooLate:
			s.dialogue.closing = true
			return false, s.ctx.Err()
		}
	}
}

// handleDuringCommand looks at a command that arrives while another is running.
func (s *session) handleDuringCommand(l *wire.Line) {
	row, line, arg, hasArg := s.find(wire.ParseCommand(l.Text))
	_, ok := row.argument.Read(arg, hasArg)
	switch {
	case line.Verb == "ABOR" && ok:
		s.op.stop(dataconn.ErrAborted)
	case line.Verb == "STAT" && arg == "" && s.op.transfer != nil && s.identity.scopes().CommandNow() == nil:
		// otherwise it waits with the others, for its turn
		ctx := s.observers.CommandBegan(s.ctx, line)
		r := s.status()
		s.tell(ctx, &report.Outcome{Command: line, Code: r.Code, Lines: r.Lines, Language: s.identity.locale.Tag()})
		s.flush()
		return
	}
	s.dialogue.queued.Add(l)
}

// stop ends the command that is running for a reason.
func (op *operation) stop(cause error) {
	if op.transfer != nil {
		op.transfer.Stop(cause)
	}
	op.cancel(cause)
}

// sayIfBegins says 150 if the transfer has begun since the last look.
func (s *session) sayIfBegins() {
	select {
	case <-s.op.begins:
		s.goOn(s.transferStarting())
	default:
	}
}

// perform does the part of a command that may take long, and returns why the command has failed, if it has.
func (s *session) perform(work func() error) error {
	_, err := s.await(panics.Start(work))
	return s.op.failure(err)
}

// run performs a command with the library.
func (s *session) run(verb, name string) error {
	s.op.Verb, s.op.Name = verb, name
	return s.about(s.perform(func() error { return s.engine.Run(&s.op.Operation) }))
}
