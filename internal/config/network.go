package config

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// ProxyProtocol is from whom the server takes the addresses of clients.
type ProxyProtocol struct {
	// Networks of load balancers that send PROXY headers (version 1 or 2). The server requires headers from there,
	// and believes none from elsewhere.
	Trusted []value.Network `yaml:"trusted" default:"none" since:"0.2.0"`
}

// Check reports what is wrong with the section that p leads to.
func (x ProxyProtocol) Check(p yamlconf.Path, report yamlconf.Report) {
	for i, n := range x.Trusted {
		if n.Bits() == 0 {
			report(
				p.Child("trusted").Child(strconv.Itoa(i)),
				"%s is every address, so that any client could take that of another: write the networks of the load "+
					"balancers", n)
		}
	}
}

// Networks are those that are trusted.
func (x ProxyProtocol) Networks() []netip.Prefix {
	networks := make([]netip.Prefix, 0, len(x.Trusted))
	for _, n := range x.Trusted {
		networks = append(networks, n.Prefix)
	}
	return networks
}

// A listener is an address to listen on, which Path leads to.
type listener struct {
	Path     yamlconf.Path
	Address  string
	Required bool
}

// checkListeners reports addresses that are none, and those that share a port with another one or with data
// connections.
func checkListeners(listeners []listener, data netaddr.PortRange, report yamlconf.Report) {
	ports := map[int]yamlconf.Path{}
	for _, l := range listeners {
		if l.Address == "" && !l.Required {
			continue
		}
		_, portText, err := net.SplitHostPort(l.Address)
		port, errPort := strconv.ParseUint(portText, 10, 16)
		if err != nil || errPort != nil {
			report(l.Path, "%q is no address to listen on: write it like :21 or 127.0.0.1:2121", l.Address)
			continue
		}
		if port == 0 { // any free one
			continue
		}
		if other, taken := ports[int(port)]; taken {
			report(l.Path, "port %d is that of %s too: choose another", port, other)
		}
		ports[int(port)] = l.Path
		if data.Contains(uint16(port)) {
			report(l.Path, "port %d lies in passive.ports (%s): choose another, or another range", port, data)
		}
	}
}
