package config

import (
	"net/netip"
	"strconv"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// ProxyProtocol says which load balancers may tell the addresses of clients.
type ProxyProtocol struct {
	// Networks of load balancers. The server requires PROXY headers (version 1 or 2) from there, and believes none from
	// elsewhere.
	Trusted []value.Network `yaml:"trusted" default:"none"`
}

// check reports what is wrong with the section that p leads to.
func (x ProxyProtocol) check(v *validator, p yamlconf.Path) {
	for i, n := range x.Trusted {
		if n.Bits() == 0 {
			v.report(
				p.Child("trusted").Child(strconv.Itoa(i)),
				"%s is every address, so that any client could take that of another: write the networks of the load "+
					"balancers", n)
		}
	}
}

// Networks are those that are trusted.
func (x ProxyProtocol) Networks() []netip.Prefix { return prefixesOf(x.Trusted) }

func prefixesOf(networks []value.Network) []netip.Prefix {
	prefixes := make([]netip.Prefix, len(networks))
	for i, n := range networks {
		prefixes[i] = n.Prefix
	}
	return prefixes
}
