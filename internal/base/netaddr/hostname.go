package netaddr

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// maxDomainName is the maximum length of a domain name in text form (RFC 1035, section 2.3.4).
const maxDomainName = 253

// ErrTooLong is returned if the server name in a TLS handshake is too long to be a host name.
var ErrTooLong = errors.New("the TLS server name is longer than 253 bytes, the maximum of a host name")

// CheckServerName rejects a handshake whose server name is too long to be a host name, before the name is compared or
// stored. TLS itself would accept 64 KiB.
func CheckServerName(hello *tls.ClientHelloInfo) error {
	if len(hello.ServerName) > maxDomainName {
		return ErrTooLong
	}
	return nil
}

// ParseHost parses the argument of HOST (RFC 7151, section 3.1): a domain name, an IPv4 address or an IPv6 address in
// brackets, without a port. It returns domain names in lower case.
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

// lowerASCII converts only ASCII letters to lower case. unicode.ToLower would also convert some other characters to
// ASCII letters.
func lowerASCII(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// NormalizeHost returns the canonical form of a host, for comparisons: an IP address in its shortest form, or a name in
// lower case with A-labels (RFC 5890) and without a trailing dot. It returns invalid names unchanged.
func NormalizeHost(name string) string {
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.String()
	}
	short := strings.TrimSuffix(name, ".")
	if len(short) > maxDomainName { // the time of ToASCII is quadratic in the length
		return name
	}
	ascii, err := idna.Lookup.ToASCII(short)
	if err != nil {
		return name
	}
	return ascii
}
