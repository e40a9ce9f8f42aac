package control

import (
	"net/netip"
	"strings"
)

// parseHost checks the argument of HOST (RFC 7151 3.1): a domain name, an IPv4
// address or an IPv6 address in brackets, never with a port. Domain names are
// compared in lower case, without the dot of a fully qualified one.
func parseHost(arg string) (string, bool) {
	if inner, ok := strings.CutPrefix(arg, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		return addr.String(), ok && err == nil && addr.Is6() && addr.Zone() == ""
	}
	name := strings.TrimSuffix(strings.ToLower(arg), ".")
	const maxDomainName = 253 // RFC 1035 2.3.4, as text
	if name == "" || len(name) > maxDomainName {
		return "", false
	}
	for label := range strings.SplitSeq(name, ".") {
		const maxLabel = 63
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return "", false
		}
		for i := range len(label) {
			c := label[i]
			if c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
				return "", false
			}
		}
	}
	return name, true
}
