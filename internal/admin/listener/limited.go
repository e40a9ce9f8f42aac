package listener

import (
	"net"
	"net/netip"
	"sync"

	"github.com/babelftp/babelftp/internal/limits"
	"github.com/babelftp/babelftp/internal/wire"
)

const (
	// maxConnections is how many connections there may be, so that strangers take few descriptors.
	maxConnections = 256
	// maxPerNetwork is how many of them one network may have, so that it leaves some to others. A browser has six at most.
	maxPerNetwork = 64
)

// limited closes connections that are too many.
type limited struct {
	net.Listener

	mu    sync.Mutex
	all   int
	count map[netip.Prefix]int
}

func newLimited(l net.Listener) *limited { return &limited{Listener: l, count: map[netip.Prefix]int{}} }

// Accept implements [net.Listener].
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		network := limits.Network(wire.AddrOf(conn.RemoteAddr()))
		if l.enter(network) {
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(network) })}, nil
		}
		_ = conn.Close()
	}
}

func (l *limited) enter(network netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == maxConnections || l.count[network] == maxPerNetwork {
		return false
	}
	l.all++
	l.count[network]++
	return true
}

func (l *limited) leave(network netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.count[network]--; l.count[network] == 0 {
		delete(l.count, network)
	}
}

type limitedConn struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
