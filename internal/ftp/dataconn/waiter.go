package dataconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"
)

// A waiter is a session that waits for the client on a port, until the client connects or the time is
// over. Then the session has the port no more, also if no transfer begins.
type waiter struct {
	ports    *Ports
	listener *listener
	client   Client
	began    time.Time
	timer    *time.Timer
	ready    chan struct{} // closed when a connection can be that of the session; nil where the port was free
	settled  chan struct{} // Closed when conn or err is set.

	// The mutex of ports guards these.
	since   time.Time  // What has arrived before is not for the session.
	other   netip.Addr // The last one that has connected, and for which no session waits.
	readyAt uint64     // the number of accepted connections that makes it ready
	conn    net.Conn   // of the client, until Open takes it
	err     error      // why there is none
}

// takes says whether a connection that arrived then can be that of the session. The mutex of ports is locked.
func (w *waiter) takes(arrived time.Time) bool {
	if arrived.Before(w.since) {
		return false
	}
	select {
	case <-w.settled:
		return false
	case <-w.ready:
		return true
	default:
		return w.ready == nil
	}
}

// settle ends the wait by a connection or an error, if that has not happened yet. The mutex of
// ports is locked.
func (w *waiter) settle(conn net.Conn, err error) {
	select {
	case <-w.settled:
	default:
		w.conn, w.err = conn, err
		close(w.settled)
	}
}

// remove takes the session off its port, and returns false if that has happened before. The last one closes
// the port. The mutex of ports is locked.
func (w *waiter) remove() bool {
	p, l := w.ports, w.listener
	if l.waiting[w.client.Addr] != w {
		return false
	}
	delete(l.waiting, w.client.Addr)
	p.count(w.client, -1)
	w.timer.Stop()
	if len(l.waiting) == 0 && !l.stays {
		_ = l.Close()
		delete(p.listeners, l.address)
	}
	return true
}

// end gives up the wait for a reason, if the client has not connected.
func (w *waiter) end(err error) {
	w.ports.mu.Lock()
	defer w.ports.mu.Unlock()
	if w.remove() {
		w.ports.expectLate(w.client.Addr, w.listener.address.Port())
		late := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
		if late && w.ports.Missed != nil {
			w.ports.Missed()
		}
	}
	w.settle(nil, w.missing(err))
}

func (w *waiter) expire() {
	defer w.ports.Guard.Recover("wait for a data connection")
	w.end(os.ErrDeadlineExceeded)
}

// A missingError says that a client has not connected to the port that it got.
type missingError struct {
	port    uint16
	waited  time.Duration
	other   netip.Addr // who has connected instead, if anyone
	because error
}

// Error is for the log. An address that differs shows a load balancer or a router that hides the client.
func (e *missingError) Error() string {
	text := fmt.Sprintf("the client did not connect to port %d within %v", e.port, e.waited.Round(time.Millisecond))
	if e.other.IsValid() {
		text += fmt.Sprintf("; %v did, which is not the address of the control connection", e.other)
	}
	return text
}

// Unwrap returns why the wait has ended.
func (e *missingError) Unwrap() error { return e.because }

// Missing returns an error if the client has not connected.
func (w *waiter) Missing() error {
	w.ports.mu.Lock()
	defer w.ports.mu.Unlock()
	if _, missing := errors.AsType[*missingError](w.err); missing {
		return w.err
	}
	select {
	case <-w.settled:
		return nil
	default:
		return w.missing(net.ErrClosed)
	}
}

// missing is the error for a client that has not connected until now. The mutex of ports is locked.
func (w *waiter) missing(because error) error {
	return &missingError{w.listener.address.Port(), time.Since(w.began), w.other, because}
}

// Waits is true until the client has connected, or the time is over.
func (w *waiter) Waits() bool {
	select {
	case <-w.settled:
		return false
	default:
		return true
	}
}

// Open returns the connection of the client. The deadline of ctx replaces that of Listen, if
// that has not passed.
func (w *waiter) Open(ctx context.Context) (net.Conn, error) {
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
func (w *waiter) Close() {
	w.end(net.ErrClosed)
	w.ports.mu.Lock()
	defer w.ports.mu.Unlock()
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn, w.err = nil, net.ErrClosed
	}
}
