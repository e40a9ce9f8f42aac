package relay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
)

// Options configure a [Cluster]. Ports, Peers, Trust, StallTimeout, Observe and Log are required.
type Options struct {
	Replica int      // number of this replica
	Peers   []string // hosts of all replicas, by number
	Ports   netaddr.PortRange

	// Address is the address that ports listen on and relays come from. The zero value means all addresses.
	Address netip.Addr

	Trust        *Trust
	StallTimeout time.Duration // until the next byte is transferred
	Observe      Observer
	Guard        *panics.Guard // recovers panics, which then end only one relay
	Log          *slog.Logger

	// Asked gets the connections of [Cluster.Ask] on other replicas. If it is nil, they are closed.
	Asked func(net.Conn)
}

// An Observer receives events for metrics.
type Observer interface {
	RelayOpened()
	RelayClosed(Result)
	// RelayRefused is called for a connection that this replica neither relays nor accepts from another replica.
	RelayRefused(Reason)
}

// A Result is the end of a relay.
type Result string

// Results of relays.
const (
	Complete    Result = "complete"
	Failed      Result = "failed"      // cut by the client, the owner or the network
	Unmatched   Result = "unmatched"   // no session of the owner was waiting for the client
	Unreachable Result = "unreachable" // the owner did not respond
)

// A Reason says why a connection was refused.
type Reason string

// Reasons why connections are refused.
const (
	NoPeer   Reason = "no_peer"  // a relay from an address that is not a peer
	NoHeader Reason = "header"   // a peer sent no relay header
	WrongWay Reason = "slice"    // a peer relayed to a port outside the slice of this replica
	TooMany  Reason = "too_many" // too many relays in total, or for the client
)

const (
	// takeTimeout bounds the wait until a session of the owner takes the connection.
	takeTimeout = 10 * time.Second
	// relayType is the TLV type in the header of a relay. Its value is the version of the frames and the age of
	// the connection in nanoseconds. Without the age it is a probe, and with a 0 instead of it a question of
	// [Cluster.Ask].
	relayType    = 0xe5
	relayVersion = 1
)

// Slice returns the part of the ports that a replica hands out.
func Slice(ports netaddr.PortRange, replica, replicas int) netaddr.PortRange {
	begin := func(n int) uint16 { return ports.First + uint16(ports.Size()*n/replicas) }
	return netaddr.PortRange{First: begin(replica), Last: begin(replica+1) - 1}
}

// A Cluster relays connections between the replicas.
type Cluster struct {
	Options
	peers   peers
	relays  relayLimit
	within  time.Duration // takeTimeout, shorter in tests
	stall   atomic.Int64  // nanoseconds, see SetStallTimeout
	sampler limits.Sampler[Reason]
	ctx     context.Context // canceled to cut the relays
	cut     context.CancelFunc

	listeners []net.Listener
	accepting sync.WaitGroup
	running   sync.WaitGroup // relays
}

// New returns the cluster of a replica. It opens nothing. Lookups and relays use the values of ctx, but continue
// when ctx ends.
func New(ctx context.Context, options Options) *Cluster {
	c := &Cluster{Options: options, peers: peers{}, within: takeTimeout}
	c.SetStallTimeout(options.StallTimeout)
	c.ctx, c.cut = context.WithCancel(context.WithoutCancel(ctx))
	for n, host := range options.Peers {
		if n != options.Replica {
			c.peers[n] = netaddr.NewHost(host, netaddr.SystemLookup)
		}
	}
	return c
}

// SetStallTimeout replaces StallTimeout for new connections.
func (c *Cluster) SetStallTimeout(d time.Duration) { c.stall.Store(int64(d)) }

func (c *Cluster) stallTimeout() time.Duration { return time.Duration(c.stall.Load()) }

// Start listens on the ports of the other replicas and relays connections until Shutdown. If it fails, nothing is
// open.
func (c *Cluster) Start(ctx context.Context) error {
	for _, peer := range c.peers {
		peer.Refresh(c.ctx, lookupTTL) // so that the first relay need not wait
	}
	own := Slice(c.Ports, c.Replica, len(c.Peers))
	config := net.ListenConfig{Control: limits.TransferReserve.Control}
	for n := range c.Ports.Size() {
		port := c.Ports.First + uint16(n)
		if own.Contains(port) {
			continue
		}
		l, err := config.Listen(ctx, "tcp", dataconn.ListenAddress(c.Address, port))
		if err != nil {
			c.close()
			return err
		}
		c.listeners = append(c.listeners, l)
		c.accepting.Go(func() { c.accept(l, port) })
	}
	return nil
}

func (c *Cluster) close() {
	for _, l := range c.listeners {
		_ = l.Close()
	}
	c.accepting.Wait()
}

// Shutdown stops accepting connections and waits for the relays. When ctx ends, it cuts them, including
// connections that still wait for the header of a load balancer.
func (c *Cluster) Shutdown(ctx context.Context) {
	c.close()
	stop := context.AfterFunc(ctx, c.cut)
	c.running.Wait()
	stop()
	c.cut()
}

// acceptRetry is the pause after an error such as "too many open files".
const acceptRetry = 100 * time.Millisecond

func (c *Cluster) accept(l net.Listener, port uint16) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			arrived := time.Now()
			c.running.Go(func() { c.pass(conn, port, arrived) })
		case errors.Is(err, net.ErrClosed):
			return
		default:
			c.Log.Error("data connection not accepted; the listener tries again", "port", port, "err", err)
			<-time.After(acceptRetry)
		}
	}
}

// pass relays a connection to the owner of its port.
func (c *Cluster) pass(conn net.Conn, port uint16, arrived time.Time) {
	defer conn.Close()
	defer c.Guard.Recover("relay")
	from := netaddr.Of(conn.RemoteAddr())
	if c.peers.known(from) {
		c.refuse(
			WrongWay, from,
			"the replicas have different values of cluster.replicas, cluster.peers or passive.ports; use the same on all")
		return
	}
	stop := context.AfterFunc(c.ctx, func() { _ = conn.Close() })
	client, err := c.Trust.Accept(conn)
	if !stop() || err != nil {
		return
	}
	if proxied, ok := client.(*proxyConn); ok && !proxied.isProxied() {
		return // health check of a load balancer
	}
	release, ok := c.relays.acquire(netaddr.Of(client.RemoteAddr()))
	if !ok {
		c.refuse(
			TooMany, netaddr.Of(client.RemoteAddr()),
			"the network of the client has its share of the relays; add replicas, or ban the client")
		return
	}
	defer release()
	if limits.TransferReserve.IsReached(conn) {
		c.refuse(TooMany, from, "raise the limit of descriptors")
		return
	}
	c.Observe.RelayOpened()
	result := Failed // after a panic
	defer func() { c.Observe.RelayClosed(result) }()
	result = c.relay(client, port, arrived)
}

// refuse counts a refused connection, and logs one per minute for each reason.
func (c *Cluster) refuse(reason Reason, from netip.Addr, advice string) {
	c.Observe.RelayRefused(reason)
	if missing, ok := c.sampler.Pass(reason); ok {
		c.Log.Warn("data connection between replicas refused",
			"reason", string(reason), "advice", advice, "from", from, "others", missing)
	}
}

// owner returns the replica that hands out a port.
func (c *Cluster) owner(port uint16) *netaddr.Host {
	for n := range c.Peers {
		if Slice(c.Ports, n, len(c.Peers)).Contains(port) {
			return c.peers[n]
		}
	}
	return nil
}

// Receive passes a connection on a port of this replica to the session that waits for its client. The connection
// comes from a peer that relays it, from a load balancer with a header, or directly from a client. Receive is used
// for [dataconn.PortOptions].
func (c *Cluster) Receive(conn net.Conn, arrived time.Time, match dataconn.Match) {
	if !c.receive(conn, arrived, match) {
		_ = conn.Close()
	}
}

func (c *Cluster) receive(conn net.Conn, arrived time.Time, match dataconn.Match) bool {
	from := netaddr.Of(conn.RemoteAddr())
	trusted := c.Trust.contains(from)
	stranger := !trusted && !c.peers.known(from)
	if !stranger && !trusted {
		c.peers.refresh(c.ctx)
	}
	if stranger && match(conn, arrived) {
		return true
	}
	// a replica that has a new address is a peer too
	if limits.TransferReserve.IsReached(conn) || stranger && !c.peers.confirm(c.ctx, from) {
		return false
	}
	proxied, err := readHeader(conn)
	read := time.Now() // the lookup below takes time
	if errors.Is(err, errClosed) {
		return false
	}
	relay := []byte(nil)
	if err == nil {
		relay = proxied.relayValue()
	}
	switch {
	case relay != nil && c.peers.confirm(c.ctx, from):
		return c.take(proxied, relay, arrived, read, match)
	case bytes.Equal(relay, probeValue()):
		return false // the peer probes again
	case relay != nil:
		c.refuse(NoPeer, from, "a relay came from an address that is not in cluster.peers; find out which host sends it")
		return false
	case trusted && err != nil:
		c.Trust.refuse(from, conn.LocalAddr(), err)
		return false
	case trusted:
		return match(proxied, arrived)
	}
	c.refuse(
		NoHeader, from,
		"a peer sent no relay header; do not run clients or load balancers at the addresses of cluster.peers")
	return false
}

// take passes a relayed connection to its session, and confirms that to the relay. The header has the age of the
// client's connection, from which take computes when it arrived. A probe is confirmed and closed.
func (c *Cluster) take(proxied *proxyConn, value []byte, arrived, read time.Time, match dataconn.Match) bool {
	if bytes.Equal(value, probeValue()) {
		reply := frameWriter{conn: proxied.NetConn(), first: frameTaken}
		_ = reply.begin()
		return false
	}
	if bytes.Equal(value, questionValue()) && c.Asked != nil {
		reply := frameWriter{conn: proxied.NetConn(), first: frameTaken}
		if reply.begin() != nil {
			return false
		}
		c.Asked(proxied)
		return true
	}
	if len(value) != relayLength || value[0] != relayVersion {
		c.refuse(
			NoHeader, netaddr.Of(proxied.NetConn().RemoteAddr()),
			"the replicas run different versions; update all of them")
		return false
	}
	age := time.Duration(binary.BigEndian.Uint64(value[1:]))
	if came := read.Add(-age); came.Before(arrived) {
		arrived = came
	}
	conn := newOwned(proxied, c.stallTimeout())
	if !match(conn, arrived) {
		return false
	}
	conn.begin()
	return true
}

// relayLength is the length of the TLV value of a relay.
const relayLength = 1 + 8

// probeValue returns the value of a probe, which only asks whether the other replica accepts relays from this one.
func probeValue() []byte { return []byte{relayVersion} }

// questionValue returns the value of a connection that is not for a client.
func questionValue() []byte { return []byte{relayVersion, 0} }

// Ask connects to another replica, whose Asked gets the connection.
func (c *Cluster) Ask(ctx context.Context, replica int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	conn, err := c.dialOwner(ctx, Slice(c.Ports, replica, len(c.Peers)).First)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	header, err := relayHeader(conn.LocalAddr(), conn.RemoteAddr(), questionValue())
	if err == nil {
		err = (&relay{owner: conn}).offer(header, c.within)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// header returns the header of a relay.
func header(client net.Conn, arrived time.Time) ([]byte, error) {
	value := binary.BigEndian.AppendUint64([]byte{relayVersion}, uint64(time.Since(arrived)))
	return relayHeader(client.RemoteAddr(), client.LocalAddr(), value)
}
