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

// A dialogue is the control connection: the lines that come, the replies that go, and how long the client may take.
type dialogue struct {
	conn       *wire.Conn
	implicit   bool   // whether TLS came with the connection and stays
	tlsSession string // which TLS session of the connection it is, see [dataconn.Handshake]

	queued     wire.Queue      // received while a command was running.
	drain      chan struct{}   // closed when the server is shutting down.
	done       <-chan struct{} // closed when the session is cut.
	loginUntil limits.Deadline // of the login; commands do not prolong it.
	closing    bool            // no further command is handled: the last reply was sent.
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

// readable tells whether the client can read a reply, which it cannot before implicit TLS.
func (d *dialogue) readable() bool { return !d.implicit || d.conn.Encrypted() }

// Why no command comes.
var (
	errOver      = errors.New("the session is over")
	errIdle      = errors.New("the client has sent no command in time")
	errLoginTime = errors.New("the client has not logged in in time")
)

// next waits for the next command, idle at most, and calls quiet when none has come for a while. Sessions that wait are
// many, so it takes little of the stack.
func (d *dialogue) next(idle, awhile time.Duration, quiet func()) (*wire.Line, error) {
	if d.drained() || isClosed(d.done) {
		return nil, errOver
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
		return nil, errOver
	}
}

// buffer keeps a reply, to be written together with the next.
func (d *dialogue) buffer(r wire.Reply) {
	d.closing = d.closing || r.Code == 421 // the last reply of a session (RFC 959 5.4)
	d.conn.BufferReply(r)
}

// handshake is that of the connection, which those of data connections are compared with. The host is that of the
// session.
func (d *dialogue) handshake(host string) dataconn.Handshake {
	return dataconn.Handshake{Host: host, Session: d.tlsSession, Certificates: d.conn.Certificates()}
}

// namedToTLS is the host that the client has named to TLS (SNI, RFC 6066 3), empty when there is none.
func (d *dialogue) namedToTLS() string {
	name, _ := netaddr.ParseHost(d.conn.ServerName())
	return name
}
