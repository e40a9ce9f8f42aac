package dataconn

import (
	"context"
	"net"
	"os"
	"time"
)

// passive waits for the client on a port, until the client connects or the time is
// over. Then the session has the port no more, also if no transfer begins.
type passive struct {
	ports    *Ports
	listener *listener
	client   Client
	leave    func() // the limits
	timer    *time.Timer
	ready    chan struct{} // closed when a connection can be that of the session; nil where the port was free
	settled  chan struct{} // closed when conn or err is set

	// The mutex of ports guards these.
	conn net.Conn // of the client, until Open takes it
	err  error    // why there is none
}

func (w *passive) isReady() bool {
	select {
	case <-w.ready:
		return true
	default:
		return w.ready == nil
	}
}

// settle ends the wait by a connection or an error, if that has not happened yet. The mutex of
// ports is locked.
func (w *passive) settle(conn net.Conn, err error) {
	select {
	case <-w.settled:
	default:
		w.conn, w.err = conn, err
		close(w.settled)
	}
}

// remove takes the session off its port, if that has not happened yet. The last one closes
// the port. The mutex of ports is locked.
func (w *passive) remove() {
	p, l := w.ports, w.listener
	if l.waiting[w.client.Addr] != w {
		return
	}
	delete(l.waiting, w.client.Addr)
	p.count(w.client, -1)
	w.leave()
	w.timer.Stop()
	if len(l.waiting) == 0 {
		_ = l.Close()
		delete(p.listeners, l.address)
	}
}

// end gives up the wait for a reason, if the client has not connected.
func (w *passive) end(err error) {
	w.ports.mu.Lock()
	defer w.ports.mu.Unlock()
	w.remove()
	w.settle(nil, err)
}

func (w *passive) expire() { w.end(os.ErrDeadlineExceeded) }

// Open returns the connection of the client. The deadline of ctx replaces that of Listen, if
// that has not passed.
func (w *passive) Open(ctx context.Context) (net.Conn, error) {
	defer w.Close()
	w.timer.Stop()
	select {
	case <-w.settled:
	case <-ctx.Done():
		w.end(context.Cause(ctx))
	}
	w.ports.mu.Lock()
	defer w.ports.mu.Unlock()
	conn := w.conn
	w.conn = nil
	return conn, w.err
}

// Close leaves the port, and ends a connection that no transfer has taken.
func (w *passive) Close() {
	w.end(net.ErrClosed)
	w.ports.mu.Lock()
	defer w.ports.mu.Unlock()
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn, w.err = nil, net.ErrClosed
	}
}
