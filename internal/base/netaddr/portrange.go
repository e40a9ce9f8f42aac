package netaddr

import (
	"fmt"
	"strconv"
	"strings"
)

// A PortRange is an inclusive range of TCP ports. The zero value means
// [DynamicPorts].
type PortRange struct{ First, Last uint16 }

// DynamicPorts returns the dynamic ports of RFC 6335, section 6. They are used explicitly instead of port 0, because
// the kernel then searches for a port that was unused for a minute, which takes milliseconds after a few hundred
// transfers per second have used all ports.
func DynamicPorts() PortRange { return PortRange{49152, 65535} }

// Size returns the number of ports.
func (r PortRange) Size() int { return int(r.Last) - int(r.First) + 1 }

// UnmarshalText parses a range such as 30000-30099, or a single port.
func (r *PortRange) UnmarshalText(text []byte) error {
	first, last, isRange := strings.Cut(string(text), "-")
	if !isRange {
		last = first
	}
	a, errFirst := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	b, errLast := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	switch {
	case errFirst != nil || errLast != nil || a == 0:
		return fmt.Errorf("%q is not a range of ports from 1 to 65535: write it like 30000-30099", text)
	case a > b:
		return fmt.Errorf("the range %q ends before it begins: write %d-%d", text, b, a)
	}
	r.First, r.Last = uint16(a), uint16(b)
	return nil
}

// String returns the range in the form that UnmarshalText parses, or "" for the zero value.
func (r PortRange) String() string {
	if r == (PortRange{}) {
		return ""
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Contains reports whether port lies in the range.
func (r PortRange) Contains(port uint16) bool { return r.First <= port && port <= r.Last && port != 0 }
