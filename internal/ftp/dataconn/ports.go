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

// Ports are the passive ports of a server. A port serves several sessions at the same time if the
// addresses of their clients differ: a connection belongs to the session that waits for its address.
// A session takes a free port if there is one.
type Ports struct {
	PortOptions

	mu        sync.Mutex
	listeners map[netip.AddrPort]*listener // by local address and port
	byUser    map[Client]int               // how many ports each has
	byAddress map[Client]int               // and all users of an address
	late      map[netip.Addr]latePorts     // by the address of the client
	opened    bool                         // whether all ports stay open
}

// PortOptions say which ports there are. The zero value is any dynamic port.
type PortOptions struct {
	Range netaddr.PortRange // that sessions get; the zero value means [netaddr.DynamicPorts]

	// Address is what ports listen on that [Ports.Open] opens. The zero value means any address.
	Address netip.Addr

	// Receive learns whose a connection is, and gives it to match with the client's address as its remote address. It
	// closes the connection if match is false. Each call has a goroutine of its own. By default a connection is that
	// of its remote address.
	Receive func(conn net.Conn, arrived time.Time, match Match)

	// Missed is called when the time of a session is over in which its client has not connected. It must not wait.
	Missed func()

	// Guard gets the panic of a connection, which ends that connection only. By default a panic ends the process.
	Guard *panics.Guard
}

// A Match gives a connection to the session that waits for its remote address, if that has waited when the connection
// arrived. Else it returns false.
type Match = func(conn net.Conn, arrived time.Time) bool

// A Client is the client that a session waits for.
type Client struct {
	Local, Addr  netip.Addr // on which address the session waits, and the client's
	Tenant, User string
}

// anyone is any user at the address of a client.
func (c Client) anyone() Client { return Client{Local: c.Local, Addr: c.Addr} }

// A listener is a port on which sessions wait. It closes when the last one waits no more.
type listener struct {
	*net.TCPListener
	stays   bool        // open, also when no session waits
	mu      *sync.Mutex // of the ports
	address netip.AddrPort
	waiting map[netip.Addr]*waiter // by the address of the client
	joining []*waiter              // of these, those that are not ready

	accepted uint64 // how many connections were accepted
}

// NewPorts makes the passive ports of a server. None is open.
func NewPorts(options PortOptions) *Ports {
	if options.Range == (netaddr.PortRange{}) {
		options.Range = netaddr.DynamicPorts()
	}
	return &Ports{PortOptions: options, listeners: make(map[netip.AddrPort]*listener), byUser: make(map[Client]int),
		byAddress: make(map[Client]int), late: make(map[netip.Addr]latePorts)}
}

// InUse is how many ports sessions wait on.
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

// Open opens all ports until Close, for clients whose connections other replicas pass on. After an error none is open.
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

// Close closes the ports that Open has opened. Sessions that wait get an error.
func (p *Ports) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

// close is Close. The mutex is locked.
func (p *Ports) close() {
	for _, l := range p.listeners {
		if l.stays {
			l.stays = false
			_ = l.Close()
		}
	}
}

// ListenAddress is an address and a port as [net.Listen] has them. Without an address it is any one.
func ListenAddress(addr netip.Addr, port uint16) string {
	host := ""
	if addr.IsValid() {
		host = addr.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// Listen waits for the client of a passive transfer (RFC 959 4.1.2, RFC 2428 3), for the
// time timeout. It returns the port. The error is a [limits.Error] if the client has its share of the ports.
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

// wait makes a session wait on a port. On one that is shared it is not ready yet.
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
		w.readyAt = l.accepted + uint64(pending(l.TCPListener)) + 1 // and one that Accept has just returned
		l.joining = append(l.joining, w)
		_ = l.SetDeadline(time.Unix(1, 0)) // Accept returns, and admit is called
	}
	l.waiting[c.Addr] = w
	p.count(c, 1)
	return w, nil
}

// take finds a port for a client: a free one, else one on which no session waits for the same
// address. It begins anywhere in the range, so that the next port cannot be guessed. Ports to which
// a late connection of the address may come are the last ones.
func (p *Ports) take(ctx context.Context, c Client) (*listener, error) {
	size := p.Range.Size()
	if !p.hasShare(c, size) {
		return nil, &limits.Error{Limit: limits.PassivePorts}
	}
	start := rand.IntN(size)
	var shared *listener
	var inUse error // by another program
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

// hasShare says whether a user may have one more of so many ports: a user has at most three quarters of the ports that
// the others at the same address leave. So something is left for the next one. Everyone may have one.
func (p *Ports) hasShare(c Client, size int) bool {
	own := p.byUser[c]
	return own < limits.Share(size, p.byAddress[c.anyone()]-own)
}

// count adds n ports to those of a user, and of the address.
func (p *Ports) count(c Client, n int) {
	add := func(held map[Client]int, of Client) {
		if held[of] += n; held[of] == 0 {
			delete(held, of)
		}
	}
	add(p.byUser, c)
	add(p.byAddress, c.anyone())
}

// listen opens a port, and accepts connections to it.
func (p *Ports) listen(ctx context.Context, at netip.AddrPort) (*listener, error) {
	config := net.ListenConfig{KeepAlive: -1, Control: limits.Transfers.Control} // stalls are watched for
	tcp, err := config.Listen(ctx, "tcp", ListenAddress(at.Addr(), at.Port()))
	if err != nil {
		return nil, err
	}
	l := &listener{TCPListener: tcp.(*net.TCPListener), mu: &p.mu, address: at, waiting: make(map[netip.Addr]*waiter)}
	p.listeners[at] = l
	panics.Go(func() { p.accept(l) })
	return l, nil
}

// accept gives each connection to the session that waits for it, until the listener closes.
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

// receive gives a connection to the session that waits for it, and returns whether the port is still open.
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
	open = true // after a panic
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

// give gives a connection to Receive.
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

// acceptRetry is the pause after an error such as too many open files.
const acceptRetry = 100 * time.Millisecond

// lockAndMatch is match for who does not have the mutex.
func (l *listener) lockAndMatch(conn net.Conn, arrived time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.match(conn, arrived)
}

// match gives a connection to the session that waits for the client's address. It returns false if there is none. The
// mutex is locked.
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
	if (l.stays || len(l.waiting) > 0) && limits.Transfers.Scarce(conn) { // otherwise it replaces the listener
		w.settle(nil, syscall.EMFILE)
		return false
	}
	w.settle(conn, nil)
	return true
}

// admit makes the sessions ready that have come to share the port, when no connection is left that has come before
// them. That could be one of a client behind the same address, which has come too late for its own session. A client
// that connects again and again delays no session: only those count that waited when it came. The mutex is locked.
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

// fail ends the wait on a port that accepts no more, for want of descriptors for example. The
// port stays open until its sessions begin their transfers or their time is over. So clients
// are not refused, and the transfers get 425. No other session gets the port. The mutex is locked.
func (p *Ports) fail(l *listener, err error) {
	if p.listeners[l.address] != l { // closed by the last session
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
