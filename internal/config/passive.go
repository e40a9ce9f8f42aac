package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Passive configures passive data connections (PASV and EPSV).
type Passive struct {
	// Ports for passive data connections. Use at least twice as many as a single address opens at the same time.
	Ports netaddr.PortRange `yaml:"ports" default:"49152-65535"`
	// Address in the reply to PASV.
	PublicAddress PublicAddress `yaml:"public_address" default:"the address that the client reached"`
	// Address in the reply to PASV for clients in certain networks, by network.
	PublicAddressByNetwork map[value.Network]PublicAddress `yaml:"public_address_by_network" default:"none"`
}

// A PublicAddress is an IPv4 address or a host name. It can be a list with one for each replica.
type PublicAddress struct{ hosts []string }

// UnmarshalText parses addresses and host names separated by commas.
func (a *PublicAddress) UnmarshalText(text []byte) error {
	a.hosts = nil
	for host := range strings.SplitSeq(string(text), ",") {
		host = strings.TrimSpace(host)
		addr, err := netip.ParseAddr(host)
		_, isName := netaddr.ParseHost(strings.ReplaceAll(host, replicaMark, "0"))
		switch {
		case err == nil && !addr.Unmap().Is4():
			return fmt.Errorf("%s is not an IPv4 address, which PASV requires; EPSV needs no address", addr)
		case err != nil && !isName:
			return fmt.Errorf(
				"%q is neither an address nor a host name: write it like 203.0.113.7 or ftp.example.com", host)
		}
		a.hosts = append(a.hosts, host)
	}
	return nil
}

// String returns the address in the format of UnmarshalText.
func (a PublicAddress) String() string { return strings.Join(a.hosts, ", ") }

// Of returns the address or host name for a replica, or an empty string.
func (a PublicAddress) Of(replica int) string {
	if len(a.hosts) == 0 {
		return ""
	}
	host := a.hosts[min(replica, len(a.hosts)-1)]
	return strings.ReplaceAll(host, replicaMark, strconv.Itoa(replica))
}

// check validates the section at p.
func (x Passive) check(v *validator, p yamlconf.Path) {
	x.PublicAddress.check(v, p.Child("public_address"))
	for network, a := range x.PublicAddressByNetwork {
		a.check(v, p.Child("public_address_by_network").Child(network.String()))
	}
}

func (a PublicAddress) check(v *validator, p yamlconf.Path) {
	replicas := max(v.cfg.Cluster.Replicas, 1)
	switch {
	case len(a.hosts) > 1 && len(a.hosts) != replicas:
		v.report(p,
			"has %d addresses for %d replicas: write one for each (cluster.replicas), or one for all",
			len(a.hosts), replicas)
	case strings.Contains(a.String(), replicaMark) && replicas == 1:
		v.report(p, "%s requires cluster.replicas: set it, or write an address", replicaMark)
	}
}
