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

// Options are what a replica knows of the others. Ports, Peers, Trust, StallTimeout, Observe and Log are required.
type Options struct {
	Replica int      // the number of this replica
	Peers   []string // the hosts of all replicas, by their numbers
	Ports   netaddr.PortRange

	// Address is what ports listen on, and where relays come from. The zero value means any address.
	Address netip.Addr

	Trust        *Trust
	StallTimeout time.Duration // until the next byte moves
	Observe      Observer
	Guard        *panics.Guard // gets the panic of a relay, which ends that relay only; nil lets it end the process
	Log          *slog.Logger
}

// An Observer gets what happens, for metrics.
type Observer interface {
	RelayOpened()
	RelayClosed(Result)
	// RelayRefused is for what was no relay: a connection to relay, or one that another replica relays, that this one
	// does not take.
	RelayRefused(Reason)
}

// A Result is how a relay has ended.
type Result string

// Results of relays.
const (
	Complete    Result = "complete"
	Failed      Result = "failed"      // The client or the owner has cut it, or what is between them.
	Unmatched   Result = "unmatched"   // No session of the owner has waited for the client.
	Unreachable Result = "unreachable" // The owner does not answer.
)

// A Reason is why a connection was refused.
type Reason string

// Reasons to refuse connections.
const (
	NoPeer   Reason = "no_peer"  // It says that it is a relay, and comes from no peer.
	NoHeader Reason = "header"   // It comes from a peer, and has no header of a relay.
	WrongWay Reason = "slice"    // A peer relays to a port that is not of the slice of this replica.
	TooMany  Reason = "too_many" // There are as many relays as may be, or as the client may have.
)

const (
	// takeTimeout bounds the time until a session of the owner takes the connection.
	takeTimeout = 10 * time.Second
	// relayType is the type of the TLV in the header of a relay: the version of the frames, and how old the
	// connection is in nanoseconds. Without the age it is a question.
	relayType    = 0xe5
	relayVersion = 1
)

// Slice is the part of the ports that a replica hands out.
func Slice(ports netaddr.PortRange, replica, replicas int) netaddr.PortRange {
	begin := func(n int) uint16 { return ports.First + uint16(ports.Size()*n/replicas) }
	return netaddr.PortRange{First: begin(replica), Last: begin(replica+1) - 1}
}

// A Cluster is what a replica has to do with the others.
type Cluster struct {
	Options
	peers   peers
	relays  slots
	within  time.Duration // takeTimeout
	stall   atomic.Int64  // Options.StallTimeout in nanoseconds, or what SetStallTimeout has set
	sampler limits.Sampler[Reason]
	ctx     context.Context // of the relays
	cut     context.CancelFunc

	listeners []net.Listener
	accepting sync.WaitGroup
	running   sync.WaitGroup // the relays
}

// New makes the cluster of a replica. It opens nothing. Lookups and relays have the values of ctx, and go on when it
// ends.
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

// SetStallTimeout replaces StallTimeout for connections that come from then on.
func (c *Cluster) SetStallTimeout(d time.Duration) { c.stall.Store(int64(d)) }

func (c *Cluster) stallTimeout() time.Duration { return time.Duration(c.stall.Load()) }

// Start listens on the ports of the other replicas, and relays what comes there until Shutdown. After an error
// nothing is open.
func (c *Cluster) Start(ctx context.Context) error {
	for _, peer := range c.peers {
		peer.Look(c.ctx, fresh) // so that no relay waits for that
	}
	own := Slice(c.Ports, c.Replica, len(c.Peers))
	config := net.ListenConfig{Control: limits.Transfers.Control}
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

// Shutdown takes no more connections to relay, and waits for the end of the relays. When ctx ends it cuts them, and
// those that wait for the header of a load balancer.
func (c *Cluster) Shutdown(ctx context.Context) {
	c.close()
	stop := context.AfterFunc(ctx, c.cut)
	c.running.Wait()
	stop()
	c.cut()
}

// acceptRetry is the pause after an error such as too many open files.
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
			"the replicas differ in cluster.replicas, cluster.peers or passive.ports; give them the same")
		return
	}
	stop := context.AfterFunc(c.ctx, func() { _ = conn.Close() })
	client, err := c.Trust.Accept(conn)
	if !stop() || err != nil {
		return
	}
	if proxied, ok := client.(*proxyConn); ok && !proxied.isProxied() {
		return // a load balancer looks whether the port is open
	}
	leave, ok := c.relays.enter(netaddr.Of(client.RemoteAddr()))
	if !ok {
		c.refuse(
			TooMany, netaddr.Of(client.RemoteAddr()),
			"the client's address has its share of the relays of a replica; have more replicas, or ban it")
		return
	}
	defer leave()
	if limits.Transfers.Scarce(conn) {
		c.refuse(TooMany, from, "raise the limit of descriptors")
		return
	}
	c.Observe.RelayOpened()
	result := Failed // by a panic
	defer func() { c.Observe.RelayClosed(result) }()
	result = c.relay(client, port, arrived)
}

// refuse counts a connection, and tells the log of one a minute for each reason.
func (c *Cluster) refuse(reason Reason, from netip.Addr, advice string) {
	c.Observe.RelayRefused(reason)
	if missing, ok := c.sampler.Pass(reason); ok {
		c.Log.Warn("data connection between replicas refused",
			"reason", string(reason), "advice", advice, "from", from, "others", missing)
	}
}

// owner is the replica that hands out a port.
func (c *Cluster) owner(port uint16) *netaddr.Host {
	for n := range c.Peers {
		if Slice(c.Ports, n, len(c.Peers)).Contains(port) {
			return c.peers[n]
		}
	}
	return nil
}

// Receive gives a connection to the session that waits for its client on a port of this replica. The connection is a
// relay from a peer, one from a load balancer with a header, or one from a client. Receive is that of
// [dataconn.PortOptions].
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
		c.peers.lookAgain(c.ctx)
	}
	if stranger && match(conn, arrived) {
		return true
	}
	// a replica that has another address now is a peer too
	if limits.Transfers.Scarce(conn) || stranger && !c.peers.confirm(c.ctx, from) {
		return false
	}
	proxied, err := readHeader(conn)
	read := time.Now() // a lookup takes time
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
	case bytes.Equal(relay, question()):
		return false // it asks again
	case relay != nil:
		c.refuse(NoPeer, from, "a relay comes from an address that cluster.peers does not have; look who sends it")
		return false
	case trusted && err != nil:
		c.Trust.refuse(from, conn.LocalAddr(), err)
		return false
	case trusted:
		return match(proxied, arrived)
	}
	c.refuse(
		NoHeader, from,
		"a peer has sent no header of a relay; have no clients or load balancers at the addresses of cluster.peers")
	return false
}

// take gives a relayed connection to its session, and tells the relay. The client has come before the relay, and so
// long before the header as that says. A question gets its answer.
func (c *Cluster) take(proxied *proxyConn, value []byte, arrived, read time.Time, match dataconn.Match) bool {
	if bytes.Equal(value, question()) {
		answer := frameWriter{conn: proxied.NetConn(), first: frameTaken}
		_ = answer.begin()
		return false
	}
	if len(value) != relayLength || value[0] != relayVersion {
		c.refuse(
			NoHeader, netaddr.Of(proxied.NetConn().RemoteAddr()),
			"the replicas are of versions that differ; update all")
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

// relayLength is how long the value of the TLV is.
const relayLength = 1 + 8

// question is the value that asks only whether the other replica takes relays from this one.
func question() []byte { return []byte{relayVersion} }

// header is what a relay begins with.
func header(client net.Conn, arrived time.Time) ([]byte, error) {
	value := binary.BigEndian.AppendUint64([]byte{relayVersion}, uint64(time.Since(arrived)))
	return relayHeader(client.RemoteAddr(), client.LocalAddr(), value)
}
