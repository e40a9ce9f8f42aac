package netaddr

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// maxDomainName is the length of the longest name, as text (RFC 1035 2.3.4).
const maxDomainName = 253

// ErrTooLong reports a name in TLS that no host can have.
var ErrTooLong = errors.New("the client named a host to TLS whose name is longer than any can be")

// CheckServerName refuses a handshake for a name that no host can have, before it is compared or kept: TLS lets it
// have 64 kB.
func CheckServerName(hello *tls.ClientHelloInfo) error {
	if len(hello.ServerName) > maxDomainName {
		return ErrTooLong
	}
	return nil
}

// ParseHost checks the argument of HOST (RFC 7151 3.1): a domain name, an IPv4
// address or an IPv6 address in brackets, never with a port. Domain names are
// compared in lower case.
func ParseHost(arg string) (string, bool) {
	if inner, ok := strings.CutPrefix(arg, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		if !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", false
		}
		return addr.String(), true
	}
	name := strings.Map(lowerASCII, arg)
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

// lowerASCII is for what is compared by the letters of ASCII: Unicode has others
// that become one of these in lower case.
func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// NormalizeHost is the form in which hosts are compared: an IP address in its shortest form, a name in lower case and
// A-labels (RFC 5890) without a dot at the end. A name that no host can have is returned as it is.
func NormalizeHost(name string) string {
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.String()
	}
	short := strings.TrimSuffix(name, ".")
	if len(short) > maxDomainName { // its labels would take time that grows with the square of its length
		return name
	}
	ascii, err := idna.Lookup.ToASCII(short)
	if err != nil {
		return name
	}
	return ascii
}
