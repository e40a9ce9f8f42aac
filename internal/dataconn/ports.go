package dataconn

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/descriptors"
	"github.com/babelftp/babelftp/internal/limits"
	"github.com/babelftp/babelftp/internal/wire"
)

// Ports are the passive ports of a server. A port serves several sessions at the same time if the
// addresses of their clients differ: a connection belongs to the session that waits for its address.
// A session takes a free port if there is one.
type Ports struct {
	ports PortRange

	mu        sync.Mutex
	listeners map[netip.AddrPort]*listener // by local address and port
	held      map[holder]int               // how many ports each has
}

// A Client is whom a session waits for.
type Client struct {
	Local, Addr  netip.Addr // the ends of the control connection
	Tenant, User string
}

// A holder has ports: a client, its tenant at the client's address, or all clients of the address.
type holder struct {
	Client
	level int
}

// holders are all clients of an address, the tenant there, and the client.
func (c Client) holders() [3]holder {
	all := Client{Local: c.Local, Addr: c.Addr}
	tenant := all
	tenant.Tenant = c.Tenant
	return [...]holder{{all, 0}, {tenant, 1}, {c, 2}}
}

// A listener is a port on which sessions wait. It closes when the last one waits no more.
type listener struct {
	*net.TCPListener
	address netip.AddrPort
	waiting map[netip.Addr]*passive // by the address of the client
	joining []*passive              // of these, those that are not ready
}

// NewPorts makes the passive ports of a server. None is open.
func NewPorts(r PortRange) *Ports {
	if r == (PortRange{}) {
		r = DynamicPorts()
	}
	return &Ports{ports: r, listeners: make(map[netip.AddrPort]*listener), held: make(map[holder]int)}
}

// InUse is how many ports sessions wait on.
func (p *Ports) InUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.listeners)
}

// portsLimit is the limit that is reached when the clients of an address have as many ports as they may, or all.
const portsLimit = "passive.ports" // the key of the configuration

// Listen waits for the client of a passive transfer (RFC 959 4.1.2, RFC 2428 3), for the
// time timeout. It returns the port. The error is a [limits.Error] if a limit of the scopes
// is reached, or if the client has its share of the ports.
func (p *Ports) Listen(ctx context.Context, c Client, scopes limits.Scopes, timeout time.Duration) (Source, uint16, error) {
	leave, err := scopes.EnterPassivePort()
	if err != nil {
		return nil, 0, err
	}
	w, err := p.wait(ctx, c, leave, timeout)
	if err != nil {
		leave()
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
func (p *Ports) wait(ctx context.Context, c Client, leave func(), timeout time.Duration) (*passive, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := p.take(ctx, c)
	if err != nil {
		return nil, err
	}
	w := &passive{ports: p, listener: l, client: c, leave: leave, settled: make(chan struct{})}
	w.timer = time.AfterFunc(timeout, w.expire)
	if len(l.waiting) > 0 {
		w.ready = make(chan struct{})
		l.joining = append(l.joining, w)
		_ = l.SetDeadline(time.Unix(1, 0)) // Accept returns, and admit is called
	}
	l.waiting[c.Addr] = w
	p.count(c, 1)
	return w, nil
}

// take finds a port for a client: a free one, else one on which no session waits for the same
// address. It begins anywhere in the range, so that the next port cannot be guessed.
func (p *Ports) take(ctx context.Context, c Client) (*listener, error) {
	size := p.ports.size()
	if !p.hasShare(c, size) {
		return nil, &limits.Error{Limit: portsLimit}
	}
	start := rand.IntN(size)
	var shared *listener
	var inUse error // by another program
	for i := range size {
		at := netip.AddrPortFrom(c.Local, p.ports.First+uint16((start+i)%size))
		if l := p.listeners[at]; l != nil {
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
	case p.held[c.holders()[0]] == 0:
		return nil, inUse
	}
	return nil, &limits.Error{Limit: portsLimit}
}

// hasShare says whether a client may have one more of so many ports. Only clients of the same address compete for them.
// There a tenant has at most three quarters of the ports that other tenants leave, and a user three quarters of those that
// the tenant's other users leave. So something is left for the next one. Everyone may have one.
func (p *Ports) hasShare(c Client, size int) bool {
	h := c.holders()
	all, tenant, user := p.held[h[0]], p.held[h[1]], p.held[h[2]]
	ofTenant := max(1, (size-(all-tenant))*3/4)
	ofUser := max(1, (ofTenant-(tenant-user))*3/4)
	return tenant < ofTenant && user < ofUser
}

// count adds n ports to those of a client, of its tenant and of its address.
func (p *Ports) count(c Client, n int) {
	for _, h := range c.holders() {
		if p.held[h] += n; p.held[h] == 0 {
			delete(p.held, h)
		}
	}
}

// listen opens a port, and accepts connections to it.
func (p *Ports) listen(ctx context.Context, at netip.AddrPort) (*listener, error) {
	config := net.ListenConfig{KeepAlive: -1, Control: descriptors.Transfers.Control} // stalls are watched for
	tcp, err := config.Listen(ctx, "tcp", at.String())
	if err != nil {
		return nil, err
	}
	l := &listener{TCPListener: tcp.(*net.TCPListener), address: at, waiting: make(map[netip.Addr]*passive)}
	p.listeners[at] = l
	go p.accept(l)
	return l, nil
}

// accept gives each connection to the session that waits for it, until the listener closes.
func (p *Ports) accept(l *listener) {
	for open := true; open; {
		conn, err := l.Accept()
		p.mu.Lock()
		switch {
		case err == nil:
			l.match(wire.AddrOf(conn.RemoteAddr()), conn)
			open = len(l.waiting) > 0
		case len(l.joining) == 0 || !isTimeout(err):
			p.fail(l, err)
			open = false
		}
		l.admit()
		p.mu.Unlock()
	}
}

// match gives a connection to the session that waits for a client's address, or closes it. The mutex is locked.
func (l *listener) match(client netip.Addr, conn net.Conn) {
	w := l.waiting[client]
	if w == nil || !w.isReady() {
		_ = conn.Close()
		return
	}
	w.remove()
	if len(l.waiting) > 0 && descriptors.Transfers.Scarce(conn) { // otherwise it replaces the listener
		_ = conn.Close()
		w.settle(nil, syscall.EMFILE)
	}
	w.settle(conn, nil)
}

// admit makes the sessions ready that have come to share the port, when no connection is left that has come before them. That
// could be one of a client behind the same address, which has come too late for its own session. The mutex is locked.
func (l *listener) admit() {
	if len(l.joining) == 0 {
		return
	}
	_ = l.SetDeadline(time.Time{})
	if pending(l.TCPListener) {
		return
	}
	for _, w := range l.joining {
		close(w.ready)
	}
	l.joining = nil
}

// fail ends the wait on a port that accepts no more, for want of descriptors for example. The
// port stays open until its sessions begin their transfers or their time is over. So clients
// are not refused, and the transfers get 425. No other session gets the port. The mutex is locked.
func (p *Ports) fail(l *listener, err error) {
	if p.listeners[l.address] != l { // closed by the last session
		return
	}
	delete(p.listeners, l.address)
	for _, w := range l.waiting {
		w.settle(nil, err)
	}
	l.joining = nil
}
