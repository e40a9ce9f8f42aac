package config

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Cluster configures several replicas behind one address. Each replica uses its own part of `passive.ports` and
// forwards data connections for ports of other replicas.
type Cluster struct {
	// Number of this replica, starting at 0.
	Replica *int `yaml:"replica" default:"the number at the end of the host name, such as 2 of babelftp-2"`
	// Maximum number of replicas. Changing it changes the passive ports of all replicas.
	Replicas int `yaml:"replicas" default:"1"`
	// Addresses or host names of all replicas in the order of their numbers, or a single host name in which
	// `{replica}` is replaced by the number.
	Peers yamlconf.OneOrMore `yaml:"peers" default:"required with replicas"`
}

// replicaMark is replaced by the number of a replica.
const replicaMark = "{replica}"

// IsSet reports whether there are several replicas.
func (c Cluster) IsSet() bool { return c.Replicas > 1 }

// Hosts returns the addresses or host names of all replicas in the order of their numbers.
func (c Cluster) Hosts() []string {
	if len(c.Peers) != 1 {
		return c.Peers
	}
	hosts := make([]string, c.Replicas)
	for n := range hosts {
		hosts[n] = strings.ReplaceAll(c.Peers[0], replicaMark, strconv.Itoa(n))
	}
	return hosts
}

// Number returns the number of this replica. Unless it is configured, it is the number at the end of the host name.
func (c Cluster) Number(host string) (int, error) {
	if c.Replica != nil {
		return *c.Replica, nil
	}
	host, _, _ = strings.Cut(host, ".")
	n, err := strconv.ParseUint(host[strings.LastIndex(host, "-")+1:], 10, 16)
	switch {
	case err != nil || !strings.Contains(host, "-"):
		return 0, fmt.Errorf(
			"cluster.replica is missing: the host name %q does not end with a number as babelftp-2 does; write "+
				"the number", host)
	case int(n) >= c.Replicas:
		return 0, fmt.Errorf(
			"the host name %q belongs to replica %d: set cluster.replicas to a higher number on all replicas", host, n)
	}
	return int(n), nil
}

// check validates the section at p.
func (c Cluster) check(v *validator, p yamlconf.Path) {
	listen, ports := v.cfg.Listen, v.cfg.Passive.Ports
	switch {
	case c.Replicas < 0:
		v.report(p.Child("replicas"), "must be at least 1")
		return
	case c.Replicas == 0 && (c.Replica != nil || len(c.Peers) > 0):
		v.report(p.Child("replicas"), "is missing: write the maximum number of replicas")
		return
	case c.Replica != nil && (*c.Replica < 0 || *c.Replica >= max(c.Replicas, 1)):
		v.report(p.Child("replica"),
			"%d is not a replica number: write one from 0 to %d", *c.Replica,
			max(c.Replicas, 1)-1)
	}
	if !c.IsSet() {
		return
	}
	switch {
	case ports == netaddr.PortRange{}:
		v.report(p, "requires passive.ports: write a range that all replicas share, like 30000-30299")
	case ports.Size() < c.Replicas:
		v.report(p.Child("replicas"), "is larger than the number of ports in passive.ports (%s): write a larger range", ports)
	}
	if host, _, err := net.SplitHostPort(listen); err == nil && host != "" {
		if _, err := netip.ParseAddr(host); err != nil {
			v.report(
				yamlconf.Path{"listen"},
				"%q is a host name, but a cluster requires an address: write it like :21 or 10.0.0.1:21",
				host)
		}
	}
	c.checkPeers(v, p.Child("peers"))
}

func (c Cluster) checkPeers(v *validator, p yamlconf.Path) {
	switch {
	case len(c.Peers) == 1 && !strings.Contains(c.Peers[0], replicaMark):
		v.report(
			p.Child("0"), "%q has no %s for the number of the replica: write it like babelftp-%[2]s.babelftp-headless",
			c.Peers[0], replicaMark)
		return
	case len(c.Peers) != 1 && len(c.Peers) != c.Replicas:
		v.report(p,
			"has %d entries for %d replicas: write one for each, or one name with %s", len(c.Peers), c.Replicas, replicaMark)
		return
	}
	hosts := c.Hosts()
	for n, host := range hosts {
		at := p.Child(strconv.Itoa(min(n, len(c.Peers)-1)))
		_, isName := netaddr.ParseHost(host)
		if _, err := netip.ParseAddr(host); err != nil && !isName {
			v.report(at,
				"%q is neither an address nor a host name: write it like 10.0.0.1 or babelftp-0.babelftp-headless, "+
					"without a port", host)
			return
		}
		if slices.Contains(hosts[:n], host) {
			v.report(at, "duplicate %q: each replica needs its own address", host)
		}
	}
}
