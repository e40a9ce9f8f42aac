package config

import (
	"net/netip"
	"strconv"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// ProxyProtocol configures load balancers that send client addresses in the PROXY protocol.
type ProxyProtocol struct {
	// Networks of load balancers. Connections from these networks must begin with a PROXY header (version 1 or 2).
	// Headers from other networks are not accepted.
	Trusted []value.Network `yaml:"trusted" default:"none"`
}

// check validates the section at p.
func (x ProxyProtocol) check(v *validator, p yamlconf.Path) {
	for i, n := range x.Trusted {
		if n.Bits() == 0 {
			v.report(
				p.Child("trusted").Child(strconv.Itoa(i)),
				"%s contains all addresses, so that any client could forge its address: write the networks of the load "+
					"balancers", n)
		}
	}
}

// Networks returns the trusted networks.
func (x ProxyProtocol) Networks() []netip.Prefix { return prefixesOf(x.Trusted) }

func prefixesOf(networks []value.Network) []netip.Prefix {
	prefixes := make([]netip.Prefix, len(networks))
	for i, n := range networks {
		prefixes[i] = n.Prefix
	}
	return prefixes
}
