package usersfile

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/babelftp/babelftp/internal/base/bytesize"
)

// limits is the YAML form of the limits of a user.
type limits struct {
	Sessions     int      `yaml:"sessions,omitempty"`
	UploadRate   string   `yaml:"upload_rate,omitempty"`
	DownloadRate string   `yaml:"download_rate,omitempty"`
	Allow        []string `yaml:"allow,omitempty"`
	Deny         []string `yaml:"deny,omitempty"`
}

// files is the YAML form of the file rules of a user.
type files struct {
	Deny    []string `yaml:"deny,omitempty"`
	MaxSize string   `yaml:"max_size,omitempty"`
}

// kib is the number of bytes in a KiB, the unit of bandwidth in SFTPGo.
const kib = 1024

// size formats a number of bytes or bytes per second. It returns an empty string for 0, which means no limit.
func size(bytes int64) string {
	if bytes <= 0 {
		return ""
	}
	return bytesize.Size(bytes).String()
}

// networks sets the networks from which the user may log in. On the other server, denied networks take precedence,
// and if any network is allowed, all others are denied. Here, allowed networks take precedence, so the denied
// networks are subtracted from them. It returns a problem if the rules cannot be expressed.
func (l *limits) networks(allowed, denied []string) (problem string) {
	var lists [2][]netip.Prefix
	for i, texts := range [][]string{allowed, denied} {
		for _, text := range texts {
			network, ok := parseNetwork(text)
			if !ok {
				return fmt.Sprintf("%q is not a supported network: set limits.allow and limits.deny", text)
			}
			lists[i] = append(lists[i], network)
		}
	}
	if len(allowed) == 0 {
		for _, network := range lists[1] {
			l.Deny = append(l.Deny, network.String())
		}
		return ""
	}
	l.Deny = []string{"0.0.0.0/0", "::/0"}
	for _, network := range lists[0] {
		for _, rest := range without(network, lists[1]) {
			l.Allow = append(l.Allow, rest.String())
		}
	}
	if l.Allow == nil {
		return "all allowed addresses are also denied"
	}
	return ""
}

// without returns the parts of a network that are not in others.
func without(network netip.Prefix, others []netip.Prefix) []netip.Prefix {
	for _, other := range others {
		switch {
		case !other.Overlaps(network):
		case other.Bits() <= network.Bits():
			return nil
		default:
			lower := netip.PrefixFrom(network.Addr(), network.Bits()+1)
			return append(without(lower, others), without(upperHalf(network), others)...)
		}
	}
	return []netip.Prefix{network}
}

// upperHalf returns the half of a network in which the next bit is set.
func upperHalf(network netip.Prefix) netip.Prefix {
	const bitsOfByte = 8
	bytes := network.Addr().AsSlice()
	bytes[network.Bits()/bitsOfByte] |= 1 << (bitsOfByte - 1 - network.Bits()%bitsOfByte)
	addr, _ := netip.AddrFromSlice(bytes) // ok, because the length is unchanged
	return netip.PrefixFrom(addr, network.Bits()+1)
}

// parseNetwork parses an address or a network. Bits after the prefix length are cleared.
func parseNetwork(text string) (netip.Prefix, bool) {
	const mapped = 96 // length of the prefix of IPv4-mapped IPv6 addresses
	text = strings.TrimSpace(text)
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, false
	}
	if network.Addr().Is4In6() {
		if network.Bits() < mapped {
			return netip.Prefix{}, false
		}
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-mapped)
	}
	return network.Masked(), true
}
