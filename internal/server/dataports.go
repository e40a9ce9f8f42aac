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

// dataPorts are the passive ports (RFC 959), and what other replicas and load balancers have to do with them. Each
// replica of a cluster opens a slice of them. Load balancers and other replicas may connect to them, and say whose the
// connection is.
type dataPorts struct {
	*dataconn.Ports
	Trust   *relay.Trust   // who may send PROXY headers, on control connections too
	cluster *relay.Cluster // nil for a single replica
	number  int            // of this replica, 0 for a single one

	public map[string]*netaddr.Host // the addresses that PASV shows, by name
}

// A dataPortObserver learns what happens to connections that come through load balancers and other replicas.
type dataPortObserver struct {
	NoHeader func() // a connection from proxy_protocol.trusted had no PROXY header
	Missed   func() // a client has not connected to the passive port that its session has told
	Relays   relay.Observer
	Guard    *panics.Guard // a panic has ended a connection
}

// newDataPorts makes the ports of a valid configuration, and opens none. ctx is that of the relays. An error says
// that the number of the replica is not known.
func newDataPorts(ctx context.Context, cfg *config.Config, observe dataPortObserver, log *slog.Logger) (*dataPorts, error) {
	p := &dataPorts{Trust: relay.NewTrust(cfg.ProxyProtocol.Networks(), observe.NoHeader, observe.Guard, log)}
	options := dataconn.PortOptions{Range: cfg.Passive.Ports, Guard: observe.Guard, Missed: observe.Missed}
	if len(cfg.ProxyProtocol.Trusted) > 0 {
		options.Receive = p.Trust.Receive
	}
	if cfg.Cluster.Given() {
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
		})
		options.Receive = p.cluster.Receive
	}
	p.Ports = dataconn.NewPorts(options)
	return p, nil
}

// PublicAddress is what PASV shows on this replica, by a configuration that may be newer than that of the ports.
// Hosts of the configuration before are not looked up again for that. Calls follow one another.
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

// SetStallTimeout tells relays how long a transfer may move no byte, by a configuration that may be newer than that
// of the ports.
func (p *dataPorts) SetStallTimeout(d time.Duration) {
	if p.cluster != nil {
		p.cluster.SetStallTimeout(d)
	}
}

// listenAddress is the IP address in one to listen on, the zero value for any.
func listenAddress(hostPort string) netip.Addr {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(host)
	return addr
}

// Start opens all passive ports of a cluster. A single replica opens a port when a session needs it. A port that is
// taken is a [ListenError].
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

// WhenKnown calls a function when the other replicas take relays from this one, or when ctx ends. A single replica
// needs none.
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

// Shutdown ends what Start has begun. Relays may go on until ctx ends.
func (p *dataPorts) Shutdown(ctx context.Context) {
	if p.cluster != nil {
		p.cluster.Shutdown(ctx)
		p.Close()
	}
}
