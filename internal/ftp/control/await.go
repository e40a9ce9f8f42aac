package control

import (
	"context"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
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

// perform does the part of a command that may take long, and returns why the command has failed, if it has.
func (s *session) perform(work func() error) error {
	_, err := s.await(panics.Start(work))
	return s.op.failure(err)
}

// await waits until the work of the command that is running has ended, and returns its error. The session waits for
// logins, the storage, the engine and data connections in this loop only, so all commands end alike: ABOR, the end of
// the control connection and a shutdown cancel the operation and stop its transfer, and the command then ends with a
// reply. STAT is answered during a transfer. Other commands are queued.
//
// If a session that was cut has waited too long, await returns without the work having ended.
func (s *session) await(work <-chan error) (ended bool, err error) {
	op, conn := s.op, s.dialogue.conn
	lines, peerClosed, cut := conn.Lines(), conn.PeerClosed(), s.dialogue.done
	var tooLate <-chan time.Time // nil until the session is cut
	beforeLogin, mayQueue := s.identity.login == nil, maxQueued
	if beforeLogin {
		mayQueue = maxQueuedBeforeLogin
	}
	var full *time.Ticker // nil while the session reads
	for {
		more, look := lines, (<-chan time.Time)(nil)
		if s.dialogue.queued.Holds(mayQueue) {
			if more = nil; full == nil {
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
			s.goOn(op.starting(&s.identity, s.settings.directory))
			select {
			case err = <-work: // a small file has been sent already, and both replies leave in one write
				return true, err
			default:
				s.flush()
			}
		case l, ok := <-more:
			if !ok {
				lines = nil
				continue
			}
			s.handleDuringCommand(l)
		case <-peerClosed:
			peerClosed = nil
			// A client that has sent QUIT may end its side: the commands before are done and answered (RFC 959 4.1.1).
			if op.transfer != nil || !s.dialogue.queued.Contains("QUIT") {
				op.stop(dataconn.ErrPeerClosed)
			}
		case <-look:
			// The session does not read up to the end of the connection. What a user has sent before it counts, and
			// may end with QUIT.
			if beforeLogin && conn.HungUp() {
				op.stop(dataconn.ErrPeerClosed)
			}
		case <-cut:
			// The storage has been cancelled too. It may have an upload to abort.
			cut = nil
			op.stop(context.Cause(s.ctx))
			tooLate = time.After(endTimeout)
		case <-tooLate:
			s.dialogue.closing = true
			return false, s.ctx.Err()
		}
	}
}

// handleDuringCommand looks at a command that arrives while another is running. ABOR stops the running command, and
// then waits for its own turn. STAT is answered at once during a transfer. All others wait.
func (s *session) handleDuringCommand(l *wire.Line) {
	verb, arg, hasArg := wire.ParseCommand(l.Text)
	_, alone := wire.NoArgument.Read(arg, hasArg)
	switch {
	case verb == "ABOR" && alone:
		s.op.stop(dataconn.ErrAborted)
	case verb == "STAT" && arg == "" && s.op.transfer != nil && s.identity.scopes().CommandNow() == nil:
		line := report.Command{Name: verb, Verb: verb, Known: true, Began: time.Now()}
		ctx := s.observers.CommandBegan(s.ctx, line)
		r := s.status()
		s.tell(ctx, &report.Outcome{Command: line, Code: r.Code, Lines: r.Lines, Language: s.identity.locale.Tag()})
		s.flush()
		return
	}
	s.dialogue.queued.Add(l)
}

// status returns the reply to STAT without an argument.
func (s *session) status() wire.Reply {
	conn := s.dialogue.conn
	status := reply.Status{Client: conn.Remote().String(), Encrypted: conn.Encrypted(), Login: s.identity.login,
		Parameters: s.settings.parameters.Commands()}
	if s.op.transfer != nil {
		status.Transfers, status.Transferred = true, s.op.transfer.Bytes()
	}
	return wire.NewReply(211, status.Lines(s.identity.locale)...)
}

// sayIfBegins says 150 if the transfer has begun since the last look.
func (s *session) sayIfBegins() {
	select {
	case <-s.op.begins:
		s.goOn(s.op.starting(&s.identity, s.settings.directory))
	default:
	}
}

// goOn buffers a preliminary reply, to be written together with the next one.
func (s *session) goOn(r wire.Reply) {
	s.observers.CommandGoesOn(s.op.Context, s.op.command, r.Code, r.Lines)
	s.dialogue.buffer(r)
}
