package control

import (
	"errors"
	"net"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// A dialogue is the control connection of a session: received lines, buffered replies and time limits.
type dialogue struct {
	conn       *wire.Conn
	implicit   bool   // TLS started with the connection and never stops
	tlsSession string // random ID of the TLS session, see [dataconn.Handshake]

	queued     wire.LineQueue  // commands received while another one was running
	drain      chan struct{}   // closed when the server shuts down
	done       <-chan struct{} // closed when the session is cut
	loginUntil limits.Deadline // deadline for the login; commands do not extend it
	closing    bool            // the last reply was sent, so no further command is handled
}

func newDialogue(conn net.Conn, implicit bool, done <-chan struct{}) dialogue {
	return dialogue{conn: wire.NewConn(conn), implicit: implicit, drain: make(chan struct{}), done: done}
}

// drained reports whether the server is shutting down.
func (d *dialogue) drained() bool { return isClosed(d.drain) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// readable reports whether the client can read a reply. It cannot until the handshake of implicit TLS is done.
func (d *dialogue) readable() bool { return !d.implicit || d.conn.Encrypted() }

// Reasons why next returns no command.
var (
	errEnded     = errors.New("the session is over")
	errIdle      = errors.New("the client sent no command in time")
	errLoginTime = errors.New("the client did not log in in time")
)

// next returns the next command, waiting for at most idle. If none arrives within awhile, it calls quiet once and
// goes on waiting. Most sessions wait here, so the function keeps its stack small.
func (d *dialogue) next(idle, awhile time.Duration, quiet func()) (*wire.Line, error) {
	if d.drained() || isClosed(d.done) {
		return nil, errEnded
	}
	tooLate := errIdle
	left, within := d.loginUntil.Within(idle)
	if within {
		idle, tooLate = left, errLoginTime
	}
	if idle <= 0 {
		return nil, tooLate
	}
	if first := d.queued.Next(); first != nil {
		return first, nil
	}
	wait := min(awhile, idle)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case l := <-d.conn.Lines():
			if l != nil {
				return l, nil
			}
		case <-timer.C:
			if wait == idle {
				return nil, tooLate
			}
			quiet()
			idle -= wait
			wait = idle
			timer.Reset(wait)
			continue
		case <-d.drain:
		case <-d.done:
		}
		return nil, errEnded
	}
}

// buffer adds a reply to the output buffer.
func (d *dialogue) buffer(r wire.Reply) {
	d.closing = d.closing || r.Code == 421 // the last reply of a session (RFC 959 5.4)
	d.conn.BufferReply(r)
}

// handshake describes the TLS session of the control connection, to compare the handshakes of data connections
// with. host is the host of the session.
func (d *dialogue) handshake(host string) dataconn.Handshake {
	return dataconn.Handshake{Host: host, Session: d.tlsSession, Certificates: d.conn.Certificates()}
}

// namedToTLS returns the host that the client sent with SNI (RFC 6066, 3), or an empty string.
func (d *dialogue) namedToTLS() string {
	name, _ := netaddr.ParseHost(d.conn.ServerName())
	return name
}
