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

// Limits on the bytes of queued commands while another command is running. When the queue is full, the session
// stops reading and TCP flow control holds back the client. Before login the limit allows about ten short
// commands, because some clients send their first commands at once.
const (
	maxQueued            = 64 << 10
	maxQueuedBeforeLogin = 2 << 10
)

// hangUpInterval is how often a session that has stopped reading asks the kernel whether the client has
// disconnected.
const hangUpInterval = time.Second

// endTimeout bounds how long a session that was cut waits for its running command.
const endTimeout = 30 * time.Second

// perform runs work, the part of a command that may take long, and returns the reason if the command has failed.
func (s *session) perform(work func() error) error {
	_, err := s.await(panics.Start(work))
	return s.op.failure(err)
}

// await waits for the work of the running command and returns its error. Logins, storage calls, the engine and
// data connections are all awaited in this loop, so every command ends the same way: ABOR, a closed control
// connection and a shutdown cancel the operation and stop its transfer, and the command then ends with a reply.
// The server replies to STAT during a transfer and queues all other commands.
//
// If the work does not end in time after the session was cut, await returns ended == false, and the work may still
// be running.
func (s *session) await(work <-chan error) (ended bool, err error) {
	op, conn := s.op, s.dialogue.conn
	lines, peerClosed, cut := conn.Lines(), conn.PeerClosed(), s.dialogue.done
	var tooLate <-chan time.Time // nil until the session is cut
	beforeLogin, maxBytes := s.identity.login == nil, maxQueued
	if beforeLogin {
		maxBytes = maxQueuedBeforeLogin
	}
	var full *time.Ticker // nil while the session reads
	for {
		more, check := lines, (<-chan time.Time)(nil)
		if s.dialogue.queued.Holds(maxBytes) {
			if more = nil; full == nil {
				full = time.NewTicker(hangUpInterval)
				defer full.Stop()
			}
			check = full.C
		}
		select {
		case err = <-work:
			s.bufferIfStarted() // or 226 would overtake 150
			return true, err
		case <-op.started:
			s.bufferPreliminary(op.startReply(&s.identity, s.state.directory))
			select {
			case err = <-work: // a small file is already sent, so 150 and 226 leave in one write
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
			// A client may close its side after QUIT; the commands before it still run and get replies (RFC 959,
			// 4.1.1).
			if op.data != nil || !s.dialogue.queued.Contains("QUIT") {
				op.stop(dataconn.ErrPeerClosed)
			}
		case <-check:
			// Buffered lines hide the end of the connection from the reader. Before login, a client that hung up
			// cancels the command. After login, queued commands still count, and may end with QUIT.
			if beforeLogin && conn.HungUp() {
				op.stop(dataconn.ErrPeerClosed)
			}
		case <-cut:
			// The storage calls were canceled too, but may still have an upload to abort.
			cut = nil
			op.stop(context.Cause(s.ctx))
			tooLate = time.After(endTimeout)
		case <-tooLate:
			s.dialogue.closing = true
			return false, s.ctx.Err()
		}
	}
}

// handleDuringCommand handles a command that arrives while another one is running. ABOR stops the running command
// and is then queued for its own reply. STAT gets a reply at once if a transfer is running. All other commands are
// queued.
func (s *session) handleDuringCommand(l *wire.Line) {
	verb, arg, hasArg := wire.ParseCommand(l.Text)
	_, alone := wire.NoArgument.Read(arg, hasArg)
	switch {
	case verb == "ABOR" && alone:
		s.op.stop(dataconn.ErrAborted)
	case verb == "STAT" && arg == "" && s.op.data != nil && s.identity.scopes().CommandNow() == nil:
		line := report.Command{Name: verb, Verb: verb, Known: true, Began: time.Now()}
		ctx := s.observers.CommandBegan(s.ctx, line)
		r := s.status()
		s.report(ctx, &report.Outcome{Command: line, Code: r.Code, Lines: r.Lines, Language: s.identity.locale.Tag()})
		s.flush()
		return
	}
	s.dialogue.queued.Add(l)
}

// status returns the reply to STAT without an argument.
func (s *session) status() wire.Reply {
	conn := s.dialogue.conn
	status := reply.Status{Client: conn.Remote().String(), Encrypted: conn.Encrypted(), Login: s.identity.login,
		Parameters: s.state.parameters.Commands()}
	if s.op.data != nil {
		status.Transfers, status.Transferred = true, s.op.data.Bytes()
	}
	return wire.NewReply(211, status.Lines(s.identity.locale)...)
}

// bufferIfStarted buffers reply 150 if the transfer has begun.
func (s *session) bufferIfStarted() {
	select {
	case <-s.op.started:
		s.bufferPreliminary(s.op.startReply(&s.identity, s.state.directory))
	default:
	}
}

// bufferPreliminary buffers a preliminary reply, to be written together with the next reply.
func (s *session) bufferPreliminary(r wire.Reply) {
	s.observers.PreliminaryReply(s.op.Context, s.op.command, r.Code, r.Lines)
	s.dialogue.buffer(r)
}
