package control

import (
	"context"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/dataconn"
	"github.com/babelftp/babelftp/internal/ftplist"
	"github.com/babelftp/babelftp/internal/wire"
)

// maxWaiting is how many commands may wait behind one that is running before
// the session stops reading.
const maxWaiting = 64

// A session is one control connection.
type session struct {
	server   *Server
	observer Observer
	log      *slog.Logger
	ctx      context.Context // ends with the session
	cancel   context.CancelFunc
	done     <-chan struct{} // of ctx

	conn     *wire.Conn
	implicit bool // whether TLS came with the connection and stays

	waiting []wire.Line   // received while a command was running
	drain   chan struct{} // closed when the server is shutting down
	closing bool          // no further command is handled

	verb     string // of the command being handled
	argument string // of it, as received
	noted    error  // the storage's error during the command being forwarded
	located  string // where the storage has what it names, or has made it

	lang   *i18n.Localizer
	chosen bool // whether the client chose lang with LANG
	utf8   bool // whether it has said that its pathnames are UTF-8

	engine       *engine
	hostname     string  // from HOST
	tenant       *Tenant // from HOST or login
	name         string  // from USER
	password     string  // from PASS, until the engine has asked for it
	login        *Login
	failedLogins int

	renaming   bool   // whether RNFR was the command before
	algorithm  string // of HASH
	copying    string // what SITE CPFR named, where the storage has it
	parameters transferParameters
	data       dataSettings
	facts      ftplist.Facts // of MLST and MLSD
	transfer   *transfer     // the one that is running
	aborted    bool          // whether ABOR has stopped one and waits for its own reply
}

func newSession(ctx context.Context, server *Server, conn net.Conn, implicit bool) *session {
	s := &session{
		server:    server,
		observer:  server.cfg.Observer,
		log:       server.cfg.Logger.With("remote", conn.RemoteAddr().String()),
		conn:      wire.NewConn(conn),
		implicit:  implicit,
		drain:     make(chan struct{}),
		facts:     ftplist.DefaultFacts(),
		algorithm: defaultHash,
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.done = s.ctx.Done()
	s.data = s.newDataSettings()
	s.setLanguage(s.defaultLanguage())
	return s
}

// run is the session. It returns when the control connection is closed and
// everything that belonged to it has ended.
func (s *session) run() {
	defer s.end()
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("session failed", "panic", r, "stack", string(debug.Stack()))
			s.say(421, i18n.InternalError)
		}
	}()
	if s.implicit && !s.startTLS(s.conn.StartImplicitTLS) {
		return
	}
	s.greet()
	go s.conn.Read(s.done)
	for !s.closing {
		next, ok := s.next()
		if !ok {
			return
		}
		text, refusals := s.meant(next)
		s.conn.Buffer(refusals...)
		switch {
		case next.None:
			s.flush()
		case next.Err != nil:
			s.verb = ""
			s.say(500, i18n.LineTooLong)
		default:
			s.dispatch(text)
			s.conn.Resume(next, s.done)
		}
	}
}

func (s *session) end() {
	s.data.close()
	s.stopEngine()
	s.cancel()
	s.conn.Close()
}

// next waits for the next command. It returns false when the session is over.
func (s *session) next() (wire.Line, bool) {
	select {
	case <-s.drain:
		s.say(421, i18n.ShuttingDown)
		return wire.Line{}, false
	default:
	}
	if len(s.waiting) > 0 {
		first := s.waiting[0]
		s.waiting = s.waiting[1:]
		return first, true
	}
	s.waiting = nil
	timeout := s.server.cfg.IdleTimeout
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case l, ok := <-s.conn.Lines():
		return l, ok
	case <-timer.C:
		s.verb = ""
		s.say(421, i18n.IdleTimeout, seconds(timeout))
	case <-s.drain:
		s.verb = ""
		s.say(421, i18n.ShuttingDown)
	case <-s.done:
	}
	return wire.Line{}, false
}

// forward gives the engine a command line, passes its preliminary replies on
// and returns its final reply, rewritten. Meanwhile ABOR stops the transfer,
// STAT is answered, and other commands wait.
func (s *session) forward(commandLine string) wire.Reply {
	s.noted, s.located = nil, ""
	if s.engine == nil {
		if err := s.startEngine(); err != nil {
			return s.engineFailed(err)
		}
	}
	if err := s.engine.command(commandLine); err != nil {
		return s.engineFailed(err)
	}
	gone, done, incoming := s.conn.PeerClosed(), s.done, s.conn.Lines()
	var tooLate <-chan time.Time
	for {
		lines := incoming
		if len(s.waiting) >= maxWaiting {
			lines = nil
		}
		select {
		case r := <-s.engine.replies:
			if r = s.rewrite(r); !r.Preliminary() {
				return r
			}
			s.hold(r)
			select {
			case r := <-s.engine.replies: // a small file is sent by now; after one preliminary reply comes the last
				return s.rewrite(r)
			default:
				s.flush()
			}
		case <-s.engine.ctx.Done():
			return s.engineFailed(context.Cause(s.engine.ctx))
		case l, ok := <-lines:
			if !ok {
				incoming = nil
				continue
			}
			s.meanwhile(l)
		case <-gone:
			gone = nil
			s.transfer.stop(dataconn.ErrPeerClosed)
		case <-done:
			// The storage has been cancelled too. It may have an upload to abort.
			done = nil
			s.transfer.stop(s.ctx.Err())
			tooLate = time.After(endTimeout)
		case <-tooLate:
			return s.engineFailed(s.ctx.Err())
		}
	}
}

// endTimeout bounds the wait for a command that is running when its session is
// cut.
const endTimeout = 30 * time.Second

// meanwhile looks at a command that arrives while another is running.
func (s *session) meanwhile(l wire.Line) {
	verb, arg, hasArg := wire.ParseCommand(l.Text)
	switch {
	case verb == "ABOR" && !hasArg:
		s.transfer.stop(dataconn.ErrAborted)
	case verb == "STAT" && arg == "" && s.transfer != nil:
		s.status()
		return
	}
	s.waiting = append(s.waiting, l)
}

// engineFailed ends the session: without its engine it can do nothing.
func (s *session) engineFailed(err error) wire.Reply {
	s.closing = true
	s.log.Error("engine failed", "command", s.verb, "err", err)
	return wire.NewReply(421, s.text(i18n.InternalError))
}

// toEngine forwards a command as it came.
func (s *session) toEngine(arg string) {
	line := s.verb
	if arg != "" {
		line += " " + escapePathname(arg)
	}
	s.send(s.forward(line))
}

// seconds writes a duration as a reply shows it.
func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

func (s *session) notImplemented(string) { s.say(502, i18n.NotImplemented, s.verb) }
