package dataconn

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/panics"
)

// Ports are the passive ports of a server. Several sessions can wait on the same port if their clients have
// different addresses, because a connection belongs to the session that waits for its address. A session gets an
// unused port if there is one.
type Ports struct {
	PortOptions

	mu        sync.Mutex
	listeners map[netip.AddrPort]*listener // by local address and port
	byUser    map[Client]int               // number of ports per user
	byAddress map[Client]int               // number of ports per client address
	late      map[netip.Addr]latePorts     // by client address
	opened    bool                         // all ports stay open
}

// PortOptions configure [Ports]. The zero value uses any dynamic port.
type PortOptions struct {
	Range netaddr.PortRange // ports for sessions; the zero value means [netaddr.DynamicPorts]

	// Address is the address that [Ports.Open] listens on. The zero value means all addresses.
	Address netip.Addr

	// Receive determines the client of a connection and passes the connection to match, with the client's address
	// as its remote address. If match returns false, Receive closes the connection. Each call runs in its own
	// goroutine. By default the client is the remote address.
	Receive func(conn net.Conn, arrived time.Time, match Match)

	// Missed is called when a session times out because its client has not connected. It must not block.
	Missed func()

	// Guard recovers a panic, which then ends only its connection. Without a Guard the process ends.
	Guard *panics.Guard
}

// A Match gives a connection to the session that waits for its remote address, if that session was already waiting
// when the connection arrived. Otherwise it returns false.
type Match = func(conn net.Conn, arrived time.Time) bool

// A Client identifies the client that a session waits for.
type Client struct {
	Local, Addr  netip.Addr // local address and client address
	Tenant, User string
}

// anyone returns the key that counts all users at the address of a client.
func (c Client) anyone() Client { return Client{Local: c.Local, Addr: c.Addr} }

// A listener is a port on which sessions wait. It closes when no session waits any more.
type listener struct {
	*net.TCPListener
	stays   bool        // open even if no session waits
	mu      *sync.Mutex // the mutex of Ports
	address netip.AddrPort
	waiting map[netip.Addr]*waiter // by client address
	joining []*waiter              // the waiters that are not ready

	accepted uint64 // number of accepted connections
}

// NewPorts returns the passive ports of a server. Ports are opened on demand.
func NewPorts(options PortOptions) *Ports {
	if options.Range == (netaddr.PortRange{}) {
		options.Range = netaddr.DynamicPorts()
	}
	return &Ports{PortOptions: options, listeners: make(map[netip.AddrPort]*listener), byUser: make(map[Client]int),
		byAddress: make(map[Client]int), late: make(map[netip.Addr]latePorts)}
}

// InUse returns the number of ports on which sessions wait.
func (p *Ports) InUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, l := range p.listeners {
		if len(l.waiting) > 0 {
			n++
		}
	}
	return n
}

// Open opens all ports until Close, to receive connections that other replicas relay. If it fails, no port is
// open.
func (p *Ports) Open(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened = true
	for n := range p.Range.Size() {
		l, err := p.listen(ctx, netip.AddrPortFrom(p.Address, p.Range.First+uint16(n)))
		if err != nil {
			p.close()
			return err
		}
		l.stays = true
	}
	return nil
}

// Close closes the ports that Open has opened. Waiting sessions get an error.
func (p *Ports) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

// close closes the ports. The mutex must be locked.
func (p *Ports) close() {
	for _, l := range p.listeners {
		if l.stays {
			l.stays = false
			_ = l.Close()
		}
	}
}

// ListenAddress returns an address and a port in the format of [net.Listen]. An invalid address means all
// addresses.
func ListenAddress(addr netip.Addr, port uint16) string {
	host := ""
	if addr.IsValid() {
		host = addr.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// Listen waits for the client of a passive transfer (RFC 959, 4.1.2; RFC 2428, 3) until the timeout, and returns
// the port. The error is a [limits.Error] if the client already uses its share of the ports.
func (p *Ports) Listen(ctx context.Context, c Client, timeout time.Duration) (Source, uint16, error) {
	w, err := p.wait(ctx, c, timeout)
	if err != nil {
		return nil, 0, err
	}
	if w.ready == nil {
		return w, w.listener.address.Port(), nil
	}
	select {
	case <-w.ready:
		return w, w.listener.address.Port(), nil
	case <-w.settled:
	case <-ctx.Done():
	}
	w.Close()
	return nil, 0, w.err
}

// wait registers a session on a port. If the port is shared, the session is not ready yet.
func (p *Ports) wait(ctx context.Context, c Client, timeout time.Duration) (*waiter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := p.take(ctx, c)
	if err != nil {
		return nil, err
	}
	w := &waiter{ports: p, listener: l, client: c, began: time.Now(), since: time.Now(), settled: make(chan struct{})}
	w.timer = time.AfterFunc(timeout, w.expire)
	if l.stays || len(l.waiting) > 0 {
		w.ready = make(chan struct{})
		w.readyAt = l.accepted + uint64(pending(l.TCPListener)) + 1 // 1 for a connection that Accept has just returned
		l.joining = append(l.joining, w)
		_ = l.SetDeadline(time.Unix(1, 0)) // makes Accept return, so that admit is called
	}
	l.waiting[c.Addr] = w
	p.count(c, 1)
	return w, nil
}

// take selects a port for a client: an unused port, or else a port on which no session waits for the same address.
// It starts at a random port, so that the next port cannot be guessed. Ports at which a late connection from the
// address may arrive are tried last.
func (p *Ports) take(ctx context.Context, c Client) (*listener, error) {
	size := p.Range.Size()
	if !p.hasShare(c, size) {
		return nil, &limits.Error{Limit: limits.PassivePorts}
	}
	start := rand.IntN(size)
	var shared *listener
	var inUse error // error of a port that another program uses
	local := c.Local
	if p.opened {
		local = p.Address
	}
	late := p.late[c.Addr]
	ports := func(yield func(uint16) bool) {
		for i := range size {
			port := p.Range.First + uint16((start+i)%size)
			if late[port] == nil && !yield(port) {
				return
			}
		}
		if shared != nil {
			return
		}
		for _, port := range late.oldestFirst() {
			if !yield(port) {
				return
			}
		}
	}
	for port := range ports {
		at := netip.AddrPortFrom(local, port)
		l := p.listeners[at]
		switch {
		case l != nil && len(l.waiting) == 0:
			return l, nil
		case l != nil:
			if shared == nil && l.waiting[c.Addr] == nil {
				shared = l
			}
			continue
		}
		l, err := p.listen(ctx, at)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
		inUse = err
	}
	switch {
	case shared != nil:
		return shared, nil
	case p.byAddress[c.anyone()] == 0:
		return nil, inUse
	}
	return nil, &limits.Error{Limit: limits.PassivePorts}
}

// hasShare reports whether a user may have one more of size ports. A user may have at most three quarters of the
// ports that other users at the same address leave, so that some are left for the next user. Everyone may have one
// port.
func (p *Ports) hasShare(c Client, size int) bool {
	own := p.byUser[c]
	return own < limits.Share(size, p.byAddress[c.anyone()]-own)
}

// count adds n to the number of ports of a user and of its address.
func (p *Ports) count(c Client, n int) {
	add := func(held map[Client]int, of Client) {
		if held[of] += n; held[of] == 0 {
			delete(held, of)
		}
	}
	add(p.byUser, c)
	add(p.byAddress, c.anyone())
}

// listen opens a port and accepts connections on it.
func (p *Ports) listen(ctx context.Context, at netip.AddrPort) (*listener, error) {
	config := net.ListenConfig{KeepAlive: -1, Control: limits.TransferReserve.Control} // stalls are detected by Conn
	tcp, err := config.Listen(ctx, "tcp", ListenAddress(at.Addr(), at.Port()))
	if err != nil {
		return nil, err
	}
	l := &listener{TCPListener: tcp.(*net.TCPListener), mu: &p.mu, address: at, waiting: make(map[netip.Addr]*waiter)}
	p.listeners[at] = l
	panics.Go(func() { p.accept(l) })
	return l, nil
}

// accept passes each connection to the session that waits for it, until the listener closes.
func (p *Ports) accept(l *listener) {
	failed := false
	next := func() (net.Conn, error) {
		if failed {
			<-time.After(acceptRetry)
		}
		conn, err := l.Accept()
		failed = err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
		return conn, err
	}
	for open := true; open; {
		open = p.receive(l, next)
	}
}

// receive accepts a connection and passes it to the session that waits for it. It reports whether the port is
// still open.
func (p *Ports) receive(l *listener, accept func() (net.Conn, error)) (open bool) {
	conn, err := accept()
	arrived := time.Now()
	given := err != nil
	defer func() {
		if !given {
			_ = conn.Close()
		}
	}()
	defer p.Guard.Recover("data connection")
	open = true // returned after a panic
	p.mu.Lock()
	defer p.mu.Unlock()
	defer l.admit()
	switch {
	case err == nil && p.Receive != nil:
		l.accepted++
		given = true
		p.Guard.Go("data connection", func() { p.give(l, conn, arrived) })
	case err == nil:
		l.accepted++
		given = l.match(conn, arrived)
		return l.stays || len(l.waiting) > 0
	case len(l.joining) == 0 || !errors.Is(err, os.ErrDeadlineExceeded):
		p.fail(l, err)
		return l.stays
	}
	return true
}

// give passes a connection to Receive, and closes it after a panic.
func (p *Ports) give(l *listener, conn net.Conn, arrived time.Time) {
	returned := false
	defer func() {
		if !returned {
			_ = conn.Close()
		}
	}()
	p.Receive(conn, arrived, l.lockAndMatch)
	returned = true
}

// acceptRetry is the pause after an error such as "too many open files".
const acceptRetry = 100 * time.Millisecond

// lockAndMatch locks the mutex and calls match.
func (l *listener) lockAndMatch(conn net.Conn, arrived time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.match(conn, arrived)
}

// match passes a connection to the session that waits for its remote address. It returns false if
// no session does. The mutex must be locked.
func (l *listener) match(conn net.Conn, arrived time.Time) bool {
	from := netaddr.Of(conn.RemoteAddr())
	w := l.waiting[from]
	if w == nil {
		for _, other := range l.waiting {
			other.other = from
		}
		return false
	}
	if !w.takes(arrived) {
		return false
	}
	w.remove()
	// If the listener has closed, its descriptor is free for the connection.
	if (l.stays || len(l.waiting) > 0) && limits.TransferReserve.IsReached(conn) {
		w.settle(nil, syscall.EMFILE)
		return false
	}
	w.settle(conn, nil)
	return true
}

// admit marks sessions that joined a shared port as ready, once all connections that arrived before them were
// accepted. An earlier connection may come from a client behind the same address, whose own session has stopped
// waiting. Only the connections that waited at the time of joining count, so a client that keeps connecting delays
// no session. The mutex must be locked.
func (l *listener) admit() {
	if len(l.joining) == 0 {
		return
	}
	_ = l.SetDeadline(time.Time{})
	empty := pending(l.TCPListener) == 0
	l.joining = slices.DeleteFunc(l.joining, func(w *waiter) bool {
		ready := empty || l.accepted >= w.readyAt
		if ready {
			w.since = time.Now()
			close(w.ready)
		}
		return ready
	})
}

// fail ends the waits on a port that cannot accept connections, for example because descriptors are exhausted. The
// port stays open until its sessions start their transfers or time out, so that clients are not refused and the
// transfers get 425. No other session gets the port. The mutex must be locked.
func (p *Ports) fail(l *listener, err error) {
	if p.listeners[l.address] != l { // the last session has closed it
		return
	}
	if !l.stays {
		delete(p.listeners, l.address)
	}
	for _, w := range l.waiting {
		w.settle(nil, err)
	}
	l.joining = nil
}
