package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/relay"
)

// dataPorts are the passive ports (RFC 959) of this replica. In a cluster, each replica opens a slice of the
// configured range. Load balancers and other replicas may connect to the ports, and name the real client in a PROXY
// header.
type dataPorts struct {
	*dataconn.Ports
	Trust   *relay.Trust   // peers that may send PROXY headers, also on control connections
	cluster *relay.Cluster // nil for a single replica
	number  int            // number of this replica; 0 without a cluster

	public map[string]*netaddr.Host // addresses in replies to PASV, by host name
}

// A dataPortObserver has callbacks for connections from load balancers and other replicas.
type dataPortObserver struct {
	NoHeader func() // a peer in proxy_protocol.trusted sent no PROXY header
	Missed   func() // a client did not connect to the passive port of its session
	Relays   relay.Observer
	Guard    *panics.Guard  // counts panics, which only end their connection
	Asked    func(net.Conn) // connections on which other replicas send requests
}

// newDataPorts returns the ports of a valid configuration, without opening them. Relays end with ctx. It returns an
// error if the number of this replica is unknown.
func newDataPorts(ctx context.Context, cfg *config.Config, observe dataPortObserver, log *slog.Logger) (*dataPorts, error) {
	p := &dataPorts{Trust: relay.NewTrust(cfg.ProxyProtocol.Networks(), observe.NoHeader, observe.Guard, log)}
	options := dataconn.PortOptions{Range: cfg.Passive.Ports, Guard: observe.Guard, Missed: observe.Missed}
	if len(cfg.ProxyProtocol.Trusted) > 0 {
		options.Receive = p.Trust.Receive
	}
	if cfg.Cluster.IsSet() {
		host, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		if p.number, err = cfg.Cluster.Number(host); err != nil {
			return nil, err
		}
		options.Range = relay.Slice(cfg.Passive.Ports, p.number, cfg.Cluster.Replicas)
		options.Address = listenAddress(cfg.Listen)
		p.cluster = relay.New(ctx, relay.Options{
			Replica: p.number, Peers: cfg.Cluster.Hosts(), Ports: cfg.Passive.Ports, Address: options.Address,
			Trust: p.Trust, StallTimeout: cfg.StallTimeout, Observe: observe.Relays, Guard: observe.Guard, Log: log,
			Asked: observe.Asked,
		})
		options.Receive = p.cluster.Receive
	}
	p.Ports = dataconn.NewPorts(options)
	return p, nil
}

// PublicAddress returns the addresses for replies to PASV on this replica. cfg may be newer than the configuration of
// the ports. Hosts that were already configured keep their resolved addresses. PublicAddress is not safe for
// concurrent use.
func (p *dataPorts) PublicAddress(cfg config.Passive) dataconn.Public {
	hosts := map[string]*netaddr.Host{}
	host := func(a config.PublicAddress) *netaddr.Host {
		name := a.Of(p.number)
		if hosts[name] == nil {
			if hosts[name] = p.public[name]; hosts[name] == nil {
				hosts[name] = netaddr.NewHost(name, netaddr.SystemLookup)
			}
		}
		return hosts[name]
	}
	var public dataconn.Public
	if cfg.PublicAddress.Of(p.number) != "" {
		public.Host = host(cfg.PublicAddress)
	}
	public.Networks = make(map[netip.Prefix]*netaddr.Host, len(cfg.PublicAddressByNetwork))
	for n, a := range cfg.PublicAddressByNetwork {
		public.Networks[n.Prefix] = host(a)
	}
	p.public = hosts
	return public
}

// SetStallTimeout sets the stall timeout of relays. A reload may change it while the ports stay open.
func (p *dataPorts) SetStallTimeout(d time.Duration) {
	if p.cluster != nil {
		p.cluster.SetStallTimeout(d)
	}
}

// listenAddress returns the IP address in hostPort, or the zero value if it is empty or a name.
func listenAddress(hostPort string) netip.Addr {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(host)
	return addr
}

// Start opens all passive ports in a cluster. Without a cluster, a port is opened when a session needs it. If a port
// is in use, the error is a [ListenError].
func (p *dataPorts) Start(ctx context.Context) error {
	if p.cluster == nil {
		return nil
	}
	err := p.Open(ctx)
	if err == nil {
		err = p.cluster.Start(ctx)
	}
	if err == nil {
		return nil
	}
	p.Close()
	failed := &ListenError{Key: "passive.ports", Err: err}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		failed.Address = op.Addr.String()
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		failed.Err = call.Err
	}
	return failed
}

// WhenKnown calls do when the other replicas accept relays from this one, or when ctx ends. Without a cluster it calls
// do at once.
func (p *dataPorts) WhenKnown(ctx context.Context, do func()) {
	if p.cluster == nil {
		do()
		return
	}
	p.cluster.Guard.Go("wait for the other replicas", func() {
		defer do()
		p.cluster.AwaitPeers(ctx)
	})
}

// Shutdown ends what Start began. Relays may continue until ctx ends.
func (p *dataPorts) Shutdown(ctx context.Context) {
	if p.cluster != nil {
		p.cluster.Shutdown(ctx)
		p.Close()
	}
}
