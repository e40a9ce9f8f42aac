package usersfile

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/babelftp/babelftp/internal/base/bytesize"
)

// limits are those of a user, in the form of the configuration.
type limits struct {
	Sessions     int      `yaml:"sessions,omitempty"`
	UploadRate   string   `yaml:"upload_rate,omitempty"`
	DownloadRate string   `yaml:"download_rate,omitempty"`
	Allow        []string `yaml:"allow,omitempty"`
	Deny         []string `yaml:"deny,omitempty"`
}

// files are the rules of a user about files, in the form of the configuration.
type files struct {
	Deny    []string `yaml:"deny,omitempty"`
	MaxSize string   `yaml:"max_size,omitempty"`
}

// kib is how many bytes the unit of bandwidth of most servers has.
const kib = 1024

// size is a number of bytes, or a rate in bytes a second, empty for none.
func size(bytes int64) string {
	if bytes <= 0 {
		return ""
	}
	return bytesize.Size(bytes).String()
}

// networks takes the networks from which the user may log in, where denied ones count before allowed ones, and with
// any that is allowed all others are denied. Here allowed ones count first, so what is denied is cut out of them. The
// problem is why it cannot be expressed.
func (l *limits) networks(allowed, denied []string) (problem string) {
	var lists [2][]netip.Prefix
	for i, texts := range [][]string{allowed, denied} {
		for _, text := range texts {
			network, ok := parseNetwork(text)
			if !ok {
				return fmt.Sprintf("%q is no network that can be imported: write limits.allow and limits.deny", text)
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
		return "each address that is allowed is also denied"
	}
	return ""
}

// without is what is left of a network without others.
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

// upperHalf is the half of a network whose addresses have the next bit set.
func upperHalf(network netip.Prefix) netip.Prefix {
	const bitsOfByte = 8
	bytes := network.Addr().AsSlice()
	bytes[network.Bits()/bitsOfByte] |= 1 << (bitsOfByte - 1 - network.Bits()%bitsOfByte)
	addr, _ := netip.AddrFromSlice(bytes) // as many bytes as before
	return netip.PrefixFrom(addr, network.Bits()+1)
}

// parseNetwork reads an address or a network, which may have bits after its length.
func parseNetwork(text string) (netip.Prefix, bool) {
	const mapped = 96 // bits before an IPv4 address in an IPv6 one
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
